import { request as httpRequest } from 'node:http';
import { glob, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import { installConsumer } from './consumer-project.ts';
import type { ConsumerProject } from './consumer-project.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TSC = join(ROOT, 'node_modules/.bin/tsc');
/** Which the frameworks themselves allow. */
const PAGE = 'https://app.example';
const ANSWER = { data: { pets: [{ id: '1' }] } };
const FIRST = JSON.stringify({ query: '{ pets(limit: 1) { id } }' });

let consumer: ConsumerProject;
const sandbox = createSandbox();
let petApiUrl: string;

beforeAll(async () => {
  [consumer, petApiUrl] = await Promise.all([installConsumer(), sandbox.listen()]);
}, 400_000);
afterAll(async () => {
  await Promise.all([consumer.remove(), sandbox.close()]);
});

describe('petql from node_modules', () => {
  test('simulates a plan, in a thread of the compiled files', async () => {
    const load = ['--hours', '0.01', '--every-ms', '30000', '--plan', 'free'];
    const { code, output } = await consumer.run('node_modules/.bin/petql', 'simulate', ...load);
    expect(code).toBe(0);
    expect(output).toMatch(/^Free serves this load; data is .* old in the median\.$/m);
  });

  test('says that GraphiQL is missing where it was not installed, and answers GraphQL', async () => {
    const graphiql = join(consumer.folder, 'node_modules/@graphql-yoga/render-graphiql');
    await rename(graphiql, `${graphiql}-elsewhere`);
    const output = await consumer.start(/^curl .*$/m, {}, 'node_modules/.bin/petql', '--port', '0');
    const endpoint = /^curl -s (\S+)/m.exec(output)?.[1] ?? '';
    const page = await fetch(endpoint, { headers: { accept: 'text/html' } });
    expect([page.status, await page.text()]).toEqual([404, expect.stringMatching(/^GraphiQL is not installed;/)]);
    expect(await query(endpoint, 'demo-free')).toMatchObject(ANSWER);
    await rename(`${graphiql}-elsewhere`, graphiql);
  });

  test('has its schema and its contract where tools find them', async () => {
    const program =
      "for (const file of ['schema.graphql', 'pet-api.openapi.yaml']) console.log(require.resolve('petql/schema/' + file))";
    const { code, output } = await consumer.run(process.execPath, '--input-type=commonjs', '--eval', program);
    expect([code, output]).toEqual([0, expect.stringMatching(/schema\.graphql\n.*openapi\.yaml\n$/)]);
  });

  test('says its version', async () => {
    expect(await consumer.run('node_modules/.bin/petql', '--version')).toEqual({
      code: 0,
      output: `${packageJson.version}\n`,
    });
  });

  test('can be required too, and does not keep a program alive that forgot to close it', async () => {
    const program = `
      const { createGateway } = require('petql');
      const gateway = createGateway({ petApiUrl: '${petApiUrl}' });
      gateway.execute({ document: '{ pets(limit: 1) { id } }', apiKey: 'demo-free' })
        .then(({ data }) => console.log(JSON.stringify(data)));`;
    expect(await consumer.run(process.execPath, '--input-type=commonjs', '--eval', program)).toEqual({
      code: 0,
      output: '{"pets":[{"id":"1"}]}\n',
    });
  });

  test('says in one line which Node it needs, when an older one imports it', async () => {
    const versions = "{ ...process.versions, node: '24.11.1' }";
    const older = `data:text/javascript,Object.defineProperty(process, 'versions', { value: ${versions} })`;
    const program = "import('petql').catch(({ message }) => console.log(message))";
    expect(await consumer.run(process.execPath, '--import', older, '--eval', program)).toEqual({
      code: 0,
      output: 'petql needs Node.js 24.12 or later, and this is 24.11.1.\n',
    });
  });

  test('still has its whole schema and the scripts of its pages in a bundle', async () => {
    const program = `
      import { createGateway } from 'petql';
      const { schema } = createGateway({ petApiUrl: 'http://localhost/v1' });
      console.log(Object.keys({ ...schema.getQueryType().getFields(), ...schema.getMutationType().getFields() }).join());`;
    await writeFile(join(consumer.folder, 'bundled.mjs'), program);
    const options = ['--bundle', '--platform=node', '--outfile=bundle.cjs', '--log-level=warning'];
    expect(await consumer.run('node_modules/.bin/esbuild', 'bundled.mjs', ...options)).toEqual({ code: 0, output: '' });
    expect((await consumer.run(process.execPath, 'bundle.cjs')).output).toBe('pets,pet,petsById,rateLimit,createPet\n');
    const bundle = await readFile(join(consumer.folder, 'bundle.cjs'), 'utf8');
    for (const part of ['class CostLine', 'async function reload']) expect(bundle).toContain(part);
  });

  test("has types that compile in a strict project, README's code among it", async () => {
    const page = await readFile(join(ROOT, 'README.md'), 'utf8');
    // The recipes' types are in test/clients.
    const readme = page.replaceAll(/^<!-- schema\/recipes\/.+?^```$/gms, '');
    for (const [index, [, code = '']] of [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].entries()) {
      await writeFile(join(consumer.folder, `readme-${index}.ts`), code);
    }
    expect(await consumer.run(TSC, '-p', '.', '--singleThreaded')).toEqual({ code: 0, output: '' });
    // As somebody has it who checks libraries too.
    const strictly = ['--strict', '--noEmit', '--module', 'node20', '--types', 'node', '--singleThreaded'];
    const checked = await consumer.run(TSC, '--ignoreConfig', ...strictly, 'types.ts', 'stitched.ts');
    expect(checked).toEqual({ code: 0, output: '' });
  });
});

test("a schema with a field of one's own, as the library's page has it, answers within one visitor's share", async () => {
  const program = await readFile(join(consumer.folder, 'stitched.ts'), 'utf8');
  expect(plain(program)).toContain(plain(await blockOf('stitchSchemas')));
  const { code, output } = await consumer.run(process.execPath, 'stitched.ts');
  const [read, created, quota, calls] = output.split('\n');
  expect([code, calls]).toEqual([0, '2 calls']);
  expect(JSON.parse(read ?? '')).toMatchObject({
    data: { pets: [{ name: 'Ada', photoUrl: 'https://photos.example/1.jpg' }], none: null },
    errors: [{ path: ['none'], extensions: { code: 'BAD_USER_INPUT', argument: 'limit' } }],
  });
  const photoUrl = expect.stringMatching(/^https:\/\/photos\.example\/\d+\.jpg$/);
  expect(JSON.parse(created ?? '')).toEqual({ data: { createPet: { pet: { name: 'Momo', photoUrl } } } });
  expect(JSON.parse(quota ?? '')).toMatchObject({ data: { rateLimit: { windows: [{ used: 2 }, { used: 2 }] } } });
});

describe("the tests of a backend, as the library's page has them, pass", () => {
  test('by vitest, and compile', async () => {
    await writeFile(join(consumer.folder, 'bff.test.ts'), await blockOf("from 'vitest'"));
    expect(await consumer.run(TSC, '-p', '.', '--singleThreaded')).toEqual({ code: 0, output: '' });
    const { code, output } = await consumer.run('node_modules/.bin/vitest', 'run', 'bff.test.ts');
    expect([code, output]).toEqual([0, expect.stringMatching(/Tests .*3 passed/)]);
  });

  test('by node:test', async () => {
    await writeFile(join(consumer.folder, 'clock.mjs'), await blockOf("from 'node:test'"));
    const { code, output } = await consumer.run(process.execPath, '--test', 'clock.mjs');
    expect([code, output]).toEqual([0, expect.stringMatching(/pass 1\n/)]);
  });

  test('by jest, with the flag that the page names', async () => {
    const block = await blockOf("from 'node:test'");
    const code = block.replace("import { test } from 'node:test';\n", '');
    expect(code).not.toBe(block);
    await writeFile(join(consumer.folder, 'clock.test.js'), code);
    const jest = ['node_modules/.bin/jest', 'clock.test.js'];
    expect((await consumer.run(process.execPath, ...jest)).output).toContain('Must use import');
    const page = await readFile(join(ROOT, 'src/TESTING.md'), 'utf8');
    const flag = /`NODE_OPTIONS=(\S+) npx jest`/.exec(page)?.[1] ?? 'no flag';
    const passed = await consumer.run(process.execPath, flag, ...jest);
    expect([passed.code, passed.output]).toEqual([0, expect.stringMatching(/1 passed/)]);
  });
});

describe('petql mounted', () => {
  test("is mounted here as the library's page says", async () => {
    const readme = await readFile(join(ROOT, 'src/EMBEDDING.md'), 'utf8');
    const table = /^\| In \| Mount \|\n.*?\n\n/ms.exec(readme)?.[0] ?? '';
    const rows = [...table.matchAll(/`(.+)` \|$/gm)].map(([, code = '']) => code);
    expect(rows).toHaveLength(3);
    const mounts = await readFile(join(consumer.folder, 'mounts.ts'), 'utf8');
    for (const code of [...rows, await blockOf('reply.hijack()')]) expect(plain(mounts)).toContain(plain(code));
  });

  let origins: Record<string, string>;
  const originOf = (name: string) => origins[name] ?? '';

  beforeAll(async () => {
    const output = await consumer.start(/^ready$/m, { PET_API_URL: petApiUrl }, process.execPath, 'mounts.ts');
    origins = Object.fromEntries([...output.matchAll(/^(.+)=(http.+)$/gm)].map(([, name, origin]) => [name, origin]));
  });

  test.each([
    ['node:http', 10_000_000],
    ['Express', 10_000_000],
    ['Express at the root', 10_000_000],
    // These read the body for petql, and cut connections as they like.
    ['Express behind a parser', 300_000],
    ['Fastify', 300_000],
    ['Hono', 300_000],
  ])('in %s answers GraphQL and GraphiQL, and goes on after what is too long or no JSON', async (name, bytes) => {
    const endpoint = `${originOf(name)}/graphql`;
    expect(await graphiqlBytes(endpoint)).toBeGreaterThan(1_000_000);
    const wrong: [string, number][] = [['{"query":', 400], ...[300_000, bytes].map(tooLong)];
    for (const [body, status] of wrong) {
      expect(await query(endpoint)).toMatchObject(ANSWER);
      expect(await statusOf(endpoint, body)).toBe(status);
    }
    expect(await query(endpoint)).toMatchObject(ANSWER);
  });

  test.each(['Fastify', 'Hono behind middleware'])(
    "in %s a page that the framework's own CORS allows reads the response",
    async (name) => {
      const endpoint = `${originOf(name)}/graphql`;
      const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-business', origin: PAGE };
      const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' };
      const responses = [
        await fetch(endpoint, { method: 'OPTIONS', headers: { ...asked, origin: PAGE } }),
        await fetch(endpoint, { method: 'POST', headers, body: FIRST }),
      ];
      expect(responses.map((response) => response.headers.get('access-control-allow-origin'))).toEqual([PAGE, PAGE]);
      expect(await responses[1]?.json()).toMatchObject(ANSWER);
      const refused = (await (await fetch(`${originOf('Express at the root')}/log`)).json()) as string[];
      expect(refused.filter((line) => line.includes(PAGE))).toEqual([]);
    },
  );

  test('in Fastify it keeps what was set before', async () => {
    const { headers } = await fetch(`${originOf('Fastify')}/graphql?query={__typename}`);
    expect(headers.get('x-app')).toBe('site');
    expect(headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(headers.get('vary')).toMatch(/Origin.*Authorization/);
  });

  test('at the root of Express it leaves the other routes alone', async () => {
    const origin = originOf('Express at the root');
    expect(await (await fetch(origin)).text()).toBe('home');
    const form = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'a form' };
    expect(await (await fetch(`${origin}/form`, form)).text()).toBe('got a form');
    expect((await fetch(`${origin}/health/ready`)).status).toBe(200);
    expect((await fetch(`${origin}/nothing`)).status).toBe(404);
  });

  test('where Hono cuts the path off it says where GraphQL is', async () => {
    const page = await fetch(`${originOf('Hono that cuts the path off')}/graphql`, {
      headers: { accept: 'text/html' },
    });
    expect([page.status, page.redirected, await page.text()]).toEqual([
      404,
      false,
      expect.stringContaining('GraphQL is at /graphql'),
    ]);
  });

  test('in Hono it says that a body was read before', async () => {
    const headers = { 'content-type': 'application/json', 'x-read-before': 'yes' };
    const response = await fetch(`${originOf('Hono behind middleware')}/graphql`, {
      method: 'POST',
      headers,
      body: FIRST,
    });
    expect([response.status, await response.text()]).toEqual([500, expect.stringContaining('before petql')]);
  });
});

describe('petql beside OpenTelemetry', () => {
  test('gives the upstream one parent, by one client span of a call, where undici is instrumented too', async () => {
    const { code, output } = await consumer.run(process.execPath, 'traced.ts');
    expect([code, output]).toEqual([0, expect.stringContaining('{')]);
    const { names, sent, received } = JSON.parse(output) as Record<string, string[]>;
    expect(names).toEqual(['GET /pets', 'GET']);
    expect(received).toEqual(sent);
  });

  test("has the interface of the program's own SDK, of which a process has one", async () => {
    const folders: string[] = [];
    const found = glob('**/@opentelemetry/api/package.json', { cwd: consumer.folder });
    for await (const folder of found) folders.push(folder);
    expect(folders).toHaveLength(1);
  });
});

/** The block of code of the library's pages that has these words. */
async function blockOf(words: string): Promise<string> {
  const pages = ['src/EMBEDDING.md', 'src/TESTING.md'].map((page) => readFile(join(ROOT, page), 'utf8'));
  const library = (await Promise.all(pages)).join('\n');
  const blocks = [...library.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, code = '']) => code);
  return blocks.find((code) => code.includes(words)) ?? `there is no block with ${words}`;
}

function plain(code: string): string {
  const text = code.replaceAll(/^\/\/.*$/gm, '').replaceAll(/\s+/g, ' ');
  return text.trim();
}

function tooLong(bytes: number): [body: string, status: number] {
  return [`{"query":"${' '.repeat(bytes - 12)}"}`, 413];
}

async function query(endpoint: string, key = 'demo-business'): Promise<unknown> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  const response = await fetch(endpoint, { method: 'POST', headers, body: FIRST });
  return response.json();
}

/** How long the script is that the page loads. */
async function graphiqlBytes(endpoint: string): Promise<number> {
  const page = await (await fetch(endpoint, { headers: { accept: 'text/html' } })).text();
  const script = await fetch(new URL(/<script src="([^"]+)"/.exec(page)?.[1] ?? 'none', endpoint));
  return (await script.text()).length;
}

/** As a client sees it that says how long its body is, and sends all of it. */
function statusOf(endpoint: string, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    const request = httpRequest(endpoint, { method: 'POST', headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('error', reject);
    request.end(body);
  });
}
