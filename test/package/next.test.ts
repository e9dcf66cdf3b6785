import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { post } from '../support/client.ts';
import { freePort } from '../support/serve.ts';
import { BESIDE_NEXT, installConsumer } from './consumer-project.ts';
import type { ConsumerProject } from './consumer-project.ts';

const NEXT = 'node_modules/next/dist/bin/next';
const PAGE = 'https://app.example';
const BUILDS_MS = 180_000;

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

async function start(command: 'dev' | 'start', stateFile: string): Promise<string> {
  const port = String(await freePort());
  const env = { PET_API_URL: petApiUrl, PET_API_KEY: 'demo-free', STATE_FILE: join(site.folder, stateFile) };
  await site.start(/Ready in/, { ...env, NEXT_TELEMETRY_DISABLED: '1' }, process.execPath, NEXT, command, '-p', port);
  return `http://localhost:${port}`;
}

/** Reads through the route and through the page, each of which has a gateway of its own, and returns what the route says. */
async function readBoth(origin: string, times: number): Promise<{ codes: unknown[]; used: number }> {
  const codes: unknown[] = [];
  for (let turn = 0; turn < times; turn += 1) {
    const page = await fetch(origin);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('&quot;name&quot;')]);
    const document = `{ pet(id: "${1_000_000 + turn}") { id } }`;
    const { errors } = await post(`${origin}/graphql`, document, { headers: { 'cache-control': 'no-cache' } });
    codes.push(...(errors ?? []).map(({ extensions }) => extensions['code']));
  }
  const { data } = await post(`${origin}/graphql`, '{ rateLimit { windows { used } } }');
  return { codes, used: (data as any).rateLimit.windows[1].used };
}

test("the site is made as the library's page says", async () => {
  const readme = await readFile(fileURLToPath(new URL('../../src/README.md', import.meta.url)), 'utf8');
  const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);
  const block = blocks.find((code) => code.includes('const handler')) ?? '';
  const route = await readFile(join(site.folder, 'app/graphql/[[...rest]]/route.ts'), 'utf8');
  const [, code = ''] = /^(const handler .*)/ms.exec(block) ?? [];
  expect(code).not.toBe('');
  expect(route).toContain(code);
});

test(
  'next build opens no state file; in production the gateways of route and page share the plan of a Free key',
  async () => {
    const build = await site.run(process.execPath, NEXT, 'build');
    expect([build.code, build.output]).toEqual([0, expect.stringContaining('/graphql/[[...rest]]')]);

    const origin = await start('start', 'production.db');
    const { codes, used } = await readBoth(origin, 35);
    expect(codes).toEqual([]);
    expect(sandbox.calls.map(({ status }) => status)).not.toContain(429);
    expect(used).toBe(sandbox.calls.length);

    // Next.js would answer a preflight itself.
    const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
    const preflight = await fetch(`${origin}/graphql`, { method: 'OPTIONS', headers: { ...asked, origin: PAGE } });
    expect(preflight.headers.get('access-control-allow-origin')).toBe(PAGE);
    const page = await (await fetch(`${origin}/graphql`, { headers: { accept: 'text/html' } })).text();
    const script = /<script src="([^"]+)"/.exec(page)?.[1] ?? '';
    expect((await (await fetch(new URL(script, origin))).text()).length).toBeGreaterThan(1_000_000);
  },
  BUILDS_MS,
);

test(
  'next dev makes a gateway with each edit, and all of them count together',
  async () => {
    const before = sandbox.calls.length;
    const origin = await start('dev', 'dev.db');
    await readBoth(origin, 3);
    const file = join(site.folder, 'lib/gateway.ts');
    await writeFile(file, (await readFile(file, 'utf8')).replace("'info'", "'debug'"));
    const { codes, used } = await readBoth(origin, 3);
    expect(codes).toEqual([]);
    expect(used).toBe(sandbox.calls.length - before);
  },
  BUILDS_MS,
);
