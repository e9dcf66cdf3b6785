import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import type { Sandbox } from '../../src/program/sandbox/sandbox.ts';
import { post } from '../support/client.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { freePort } from '../support/serve.ts';
import { BESIDE_NEXT, installConsumer } from './consumer-project.ts';
import type { ConsumerProject } from './consumer-project.ts';

const NEXT = 'node_modules/next/dist/bin/next';
const PAGE = 'https://app.example';
const BUILDS_MS = 300_000;
const EDITS_PAGE = `
  import { edits } from '../../lib/gateway';
  export default () => \`edits: \${edits}.\`;
`;

let site: ConsumerProject;
let sandbox: Sandbox;
let petApiUrl: string;

beforeAll(async () => {
  sandbox = createSandbox();
  petApiUrl = await sandbox.listen();
  site = await installConsumer('next', BESIDE_NEXT);
}, BUILDS_MS);
afterAll(async () => {
  await site.remove();
  await sandbox.close();
});

async function start(command: 'dev' | 'start', options: Record<string, string>): Promise<string> {
  const port = String(await freePort());
  const env = { PET_API_URL: petApiUrl, PET_API_KEY: 'demo-free', NEXT_TELEMETRY_DISABLED: '1', ...options };
  await site.start(/Ready in/, env, process.execPath, NEXT, command, '-p', port);
  return `http://localhost:${port}`;
}

/** Reads through the route and through the page, and returns what the route says. */
async function readBoth(origin: string, times: number): Promise<{ codes: unknown[]; used: number }> {
  const codes: unknown[] = [];
  for (let turn = 0; turn < times; turn += 1) {
    const page = await fetch(origin);
    expect([page.status, /<p>(.*?)<\/p>/.exec(await page.text())?.[1]]).toEqual([200, 'Dexter 2']);
    const document = `{ pet(id: "${1_000_000 + turn}") { id } }`;
    const { errors } = await post(`${origin}/graphql`, document, { headers: { 'cache-control': 'no-cache' } });
    codes.push(...(errors ?? []).map(({ extensions }) => extensions['code']));
  }
  const { data } = await post(`${origin}/graphql`, '{ rateLimit { windows { used } } }');
  return { codes, used: (data as any).rateLimit.windows[1].used };
}

/** Which edit of `lib/gateway.ts` a page shows. */
async function editsOn(origin: string): Promise<string | undefined> {
  return /edits: (\d+)/.exec(await (await fetch(`${origin}/edits`)).text())?.[1];
}

test("the site is made as the library's page says", async () => {
  const readme = await readFile(fileURLToPath(new URL('../../src/EMBEDDING.md', import.meta.url)), 'utf8');
  const blocks = [...readme.matchAll(/^```tsx?\n(.*?)^```$/gms)].map(([, code = '']) => code);
  const files = {
    'lib/gateway.ts': 'const kept',
    'app/graphql/[[...rest]]/route.ts': 'const handler',
    'app/page.tsx': 'Page()',
  };
  for (const [file, word] of Object.entries(files)) {
    const block = blocks.find((code) => code.includes(word)) ?? 'there is no such block';
    const code = await readFile(join(import.meta.dirname, 'next', file), 'utf8');
    // The site has options of its own.
    const plain = (text: string) => text.replaceAll(/\s+/g, ' ');
    expect(plain(code)).toContain(plain(block.replace(/createGateway\(.*$/s, '').trim()));
  }
});

test(
  'next build with cacheComponents runs no operation; with trailingSlash route and page share the plan of a Free key',
  async () => {
    const env = { SITE_OPTIONS: 'all' };
    const build = await site.run(
      'env',
      ...Object.entries(env).map((pair) => pair.join('=')),
      process.execPath,
      NEXT,
      'build',
    );
    expect([build.code, build.output]).toEqual([0, expect.stringContaining('/graphql/[[...rest]]')]);
    expect(sandbox.calls).toEqual([]);

    const origin = await start('start', { ...env, STATE_FILE: join(site.folder, 'production.db') });
    const { codes, used } = await readBoth(origin, 35);
    expect(codes).toEqual([]);
    expect(sandbox.calls.map(({ status }) => status)).not.toContain(429);
    expect(used).toBe(sandbox.calls.length);

    expect((await fetch(`${origin}/graphql`, { method: 'POST', redirect: 'manual' })).status).toBe(308);
    // Next.js would answer a preflight itself, and browsers follow no redirect of one.
    const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
    const headers = { ...asked, origin: PAGE };
    const preflight = await fetch(`${origin}/graphql/`, { method: 'OPTIONS', headers, redirect: 'error' });
    expect(preflight.headers.get('access-control-allow-origin')).toBe(PAGE);
    const page = await fetch(`${origin}/graphql`, { headers: { accept: 'text/html' } });
    const script = /<script src="([^"]+)"/.exec(await page.text())?.[1] ?? '';
    expect((await (await fetch(new URL(script, page.url))).text()).length).toBeGreaterThan(1_000_000);
  },
  BUILDS_MS,
);

test.runIf(redisIsHere)(
  'next dev keeps one gateway over all edits, so that Redis has no connection more',
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    const connections = async () => Number(/connected_clients:(\d+)/.exec(await redis.command('INFO', 'clients'))?.[1]);
    const file = join(site.folder, 'lib/gateway.ts');
    const code = await readFile(file, 'utf8');
    const write = (edit: number) => writeFile(file, `${code}\nexport const edits = ${edit};\n`);
    await write(0);
    await mkdir(join(site.folder, 'app/edits'));
    await writeFile(join(site.folder, 'app/edits/page.tsx'), EDITS_PAGE);

    const before = sandbox.calls.length;
    const origin = await start('dev', { REDIS_URL: redis.url });
    expect(await editsOn(origin)).toBe('0');
    await readBoth(origin, 1);
    const first = await connections();
    expect(first).toBeGreaterThan(1);
    for (let edit = 1; edit <= 3; edit += 1) {
      await write(edit);
      await expect.poll(() => editsOn(origin), { timeout: 90_000 }).toBe(String(edit));
      expect((await readBoth(origin, 1)).codes).toEqual([]);
    }
    expect(await connections()).toBe(first);
    expect((await readBoth(origin, 1)).used).toBe(sandbox.calls.length - before);
  },
  BUILDS_MS,
);
