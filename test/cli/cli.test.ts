import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runPetql, startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { serve } from '../support/serve.ts';
import { FORBIDS } from '../support/pet-api/fault.ts';
import { PET_API_URL, createTestPetApi, startEmbedded } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

const KEY = ['--pet-api-key', 'demo-pro'];

async function start(...args: string[]): Promise<PetqlProcess> {
  const petql = await startPetql(['--port', '0', ...args]);
  onTestFinished(async () => {
    petql.kill('SIGKILL');
    await petql.exited;
  });
  return petql;
}

async function startOverPetApi(...args: string[]) {
  const petApi = createTestPetApi();
  const server = await petApi.listen();
  onTestFinished(() => server[Symbol.asyncDispose]());
  return { petApi, url: server.url, petql: await start('--pet-api-url', server.url, ...args) };
}

async function manifestFile(manifest: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'petql-manifest-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'manifest.json');
  await writeFile(file, JSON.stringify(manifest));
  return file;
}

/** Runs the curl line of a banner in a shell. */
async function paste({ output }: PetqlProcess): Promise<unknown> {
  const curl = /^curl .*$/m.exec(output.stdout)?.[0].replace('YOUR_API_KEY', 'demo-free') ?? '';
  const { stdout } = await promisify(execFile)('sh', ['-c', curl]);
  return JSON.parse(stdout);
}

/** Returns the HTTP status of a query that is sent under this name. */
async function statusUnder(host: string, { address }: PetqlProcess, path = '/graphql'): Promise<number | undefined> {
  const { hostname, port } = new URL(address);
  const sent = request({
    hostname,
    port,
    path,
    method: 'POST',
    headers: { host, 'content-type': 'application/json', authorization: 'Bearer demo-free' },
  });
  sent.end('{"query":"{ pets(limit: 1) { id } }"}');
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

test('with nothing configured it says first that it is a sandbox, then where GraphiQL is, the demo keys and a curl line', async () => {
  const petql = await start();
  const { stdout, stderr } = petql.output;
  expect(stdout).toMatch(/^petql \S+: GraphQL gateway over a sandbox, not the real pet API\n/);
  expect(stdout).toContain(`GraphiQL   ${petql.address}`);
  for (const key of ['demo-free', 'demo-pro', 'demo-business', 'demo-enterprise']) {
    expect(stdout).toMatch(new RegExp(`^ +${key} .*calls per minute`, 'm'));
  }
  expect(await paste(petql)).toMatchObject({
    data: { pets: expect.arrayContaining([{ id: '1', name: 'Ada', status: 'AVAILABLE' }]) },
  });
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(/"sandbox":"http:.*"msg":"listening"/)]);
  // No page has the keys of its callers.
  expect(await statusUnder('pets.example', petql)).toBe(200);
});

test('with a key for all callers it needs and shows none, and answers no page of another host', async () => {
  const { petql, petApi, url } = await startOverPetApi(
    ...KEY,
    '--cors-origins',
    'https://pets.example:8443, app://app.example, null',
    '--allowed-hosts',
    'Petql.example, b.example',
  );
  const { stdout, stderr } = petql.output;
  expect(stdout).toMatch(new RegExp(`^Upstream +${url}$`, 'm'));
  expect(stdout).not.toMatch(/authorization|YOUR_API_KEY/);
  expect(await paste(petql)).toMatchObject({ data: { pets: [{}, {}, {}] } });
  const page = await (await fetch(petql.address, { headers: { accept: 'text/html' } })).text();
  expect(page).toContain('GraphiQL');
  expect(page).not.toMatch(/Authorization|YOUR_API_KEY|badDays/);
  expect(stdout + stderr).not.toMatch(/demo-pro|sandbox/);

  const { port } = new URL(petql.address);
  const local = [`localhost:${port}`, 'dev.localhost', 'petql', 'petql.default.svc.cluster.local', 'a.internal.'];
  const addresses = [`127.0.0.1:${port}`, '10.1.2.3', '[::1]:4000', '[fd00::1]'];
  for (const good of [...local, ...addresses, 'Pets.Example', 'petql.example:4000', 'b.example']) {
    expect([good, await statusUnder(good, petql)]).toEqual([good, 200]);
  }
  const endings = [
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil.xlocal',
    'evil.example.',
    '[evil.example]',
  ];
  for (const bad of [`evil.example:${port}`, 'app.example', ...endings]) {
    for (const path of ['/health/live', '/health/ready?x']) {
      expect(await statusUnder(bad, petql, path)).not.toBe(421);
      // As a proxy gets it (RFC 9112, section 3.2.2).
      expect(await statusUnder(bad, petql, `http://petql.example:4000${path}`)).not.toBe(421);
    }
    expect(await statusUnder(bad, petql, 'http://petql.example/graphql')).toBe(421);
    const paths = ['/graphql', '/graphql/graphiql', '/health/', '/health/x', '/health/lively', '/health/../graphql'];
    for (const path of paths) expect([bad, path, await statusUnder(bad, petql, path)]).toEqual([bad, path, 421]);
  }
  expect(new Set(petApi.log.map(({ key }) => key))).toEqual(new Set(['demo-pro']));
});

test('at an address for other machines it answers allowed hosts alone; on SIGTERM it answers what runs and exits with 0', async () => {
  const { petql, petApi } = await startOverPetApi(...KEY, '--host', '0.0.0.0', '--allowed-hosts', 'pets.example');
  const { hostname, port } = new URL(petql.address);
  const sent = request({ host: hostname, port, path: '/graphql', headers: { host: 'other.example' } }).end();
  const [refusal] = (await once(sent, 'response')) as [IncomingMessage];
  expect([refusal.statusCode, await text(refusal)]).toEqual([
    421,
    expect.stringContaining('--allowed-hosts (ALLOWED_HOSTS)'),
  ]);

  expect(await statusUnder('pets.example', petql)).toBe(200);

  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  petApi.fault = { held };
  const answer = fetch(petql.address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"query":"mutation { createPet(input: { name: \\"Momo\\", categoryId: 1 }) { pet { name } } }"}',
  });
  await until(() => petApi.log.some(({ target }) => target === 'create'));
  petql.kill('SIGTERM');
  const connects = () => fetch(petql.address, { headers: { connection: 'close' } }).then(Boolean, () => false);
  await until(async () => !(await connects()));
  release();
  const response = await answer;
  expect(await response.json()).toMatchObject({ data: { createPet: { pet: { name: 'Momo' } } } });
  expect(response.headers.get('connection')).toBe('close');
  expect(await petql.exited).toBe(0);
});

test.each([
  ['--allowed-hosts', '*'],
  ['--cors-origins', '*'],
])('with %s %s any Host may spend a server-side key', async (...args) => {
  const { petql } = await startOverPetApi(...KEY, '--host', '0.0.0.0', ...args);
  expect(await statusUnder('pets.example', petql)).toBe(200);
});

test('with trusted documents only it prints a request for one that needs no variables', async () => {
  const operations = [
    { id: 'add', body: 'mutation { __typename }' },
    { id: 'one', body: 'query($id: ID!) { pet(id: $id) { id } }' },
    { id: "it's", body: '{ pets(limit: 3) { id } }' },
  ];
  const manifest = await manifestFile({ format: 'apollo-persisted-query-manifest', operations });
  const { petql } = await startOverPetApi('--trusted-documents', manifest, '--require-trusted-documents');
  expect(petql.output.stdout).toContain("-H 'authorization: Bearer YOUR_API_KEY'");
  expect(await paste(petql)).toMatchObject({ data: { pets: [{}, {}, {}] } });
});

test('what is wrong ends in one clear line and exit code 1', async () => {
  await using other = await serve(() => {});
  const { port } = new URL(other.origin);
  const inUse = new RegExp(
    `address already in use 127\\.0\\.0\\.1:${port}; choose another address with --host .* or --port`,
  );
  const file = await manifestFile({ a: '{ cats }' });
  const cases: [string[], RegExp][] = [
    [['--port', 'x'], /^--port must be a whole number from 0 to 65535, got "x"$/],
    [['--host', 'no.such.host.invalid'], /no\.such\.host\.invalid; choose another address with --host/],
    [['--trusted-documents', `${file}\r`], /^--trusted-documents: cannot read .*manifest\.json\\r: ENOENT/],
    [['--trusted-documents', file], /^--trusted-documents .*"a": Cannot query field/],
    [['--port', port], inUse],
    [['sandbox', '--port', port], inUse],
  ];
  const ended = cases.map(async ([args, line]) => {
    const { code, stdout, stderr } = await runPetql(args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(/^petql: ([^\n]+)\n$/.exec(stderr)?.[1]).toMatch(line);
  });
  await Promise.all(ended);
});

describe('hash-key', () => {
  const keySecret = 'a secret of the store';
  const env = { PET_API_URL, KEY_SECRET: keySecret };

  test('prints the hash by which the log names a key', async () => {
    await using gateway = await startEmbedded({ keySecret });
    gateway.petApi.fault = FORBIDS;
    await gateway.execute({ document: '{ pets { id } }', apiKey: 'demo-free' });
    const stdout = `${gateway.logLines.find(({ key }) => key !== undefined)?.['key']}\n`;
    expect(stdout).toMatch(/^[\w-]{22,}\n$/);
    const ways = [{ env, input: 'demo-free\n' }, { env: { ...env, PET_API_KEY: 'demo-free' } }];
    const runs = await Promise.all(ways.map((way) => runPetql(['hash-key'], way)));
    for (const run of runs) expect(run).toEqual({ code: 0, stdout, stderr: '' });
  });

  test.each<[string, string[], object, RegExp]>([
    ['a key among the arguments', ['--pet-api-key', 'demo-free'], { env }, /from PET_API_KEY or standard input/],
    ['no key', [], { env }, /^petql: expected an API key/],
    ['no URL of the pet API', [], { input: 'demo-free' }, /^petql: --pet-api-url \(PET_API_URL\) must be/],
  ])('refuses %s', async (_name, args, options, line) => {
    const { code, stdout, stderr } = await runPetql(['hash-key', ...args], options);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(line);
    expect(stderr).not.toContain('demo-free');
  });
});

test('in production it prints no banner, and each line of both outputs is JSON', async () => {
  const { code, stdout, stderr } = await runPetql(['--port', '0', '--sandbox'], {
    env: { NODE_ENV: 'production' },
    onStart: ({ output, kill }) => void until(() => output.stderr.includes('"listening"')).then(() => kill('SIGTERM')),
  });
  expect([code, stdout]).toEqual([0, '']);
  const [listening] = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  expect(listening).toMatchObject({ msg: 'listening', endpoint: expect.stringContaining('/graphql') });
});

test('where GraphiQL was not installed it says so in its place, and answers GraphQL', async () => {
  const hooks = `{ resolve(name, context, next) {
    if (name.startsWith('@graphql-yoga/render-graphiql')) throw Object.assign(new Error(name), { code: 'ERR_MODULE_NOT_FOUND' });
    return next(name, context);
  } }`;
  const preload = `import { registerHooks } from 'node:module'; registerHooks(${hooks});`;
  const petql = await startPetql(['--port', '0'], {
    nodeOptions: ['--import', `data:text/javascript,${encodeURIComponent(preload)}`],
  });
  onTestFinished(() => petql.kill('SIGKILL'));
  const page = await fetch(petql.address, { headers: { accept: 'text/html' } });
  expect([page.status, await page.text()]).toEqual([404, expect.stringMatching(/^GraphiQL is not installed;/)]);
  expect(await statusUnder('localhost', petql)).toBe(200);
});

// Bun says that it is a Node of today, and its undici is another.
test.each([
  ['22.21.0', { node: '22.21.0' }],
  ['24.11.1', { node: '24.11.1' }],
  ['Bun 1.4.2', { node: '26.3.0', bun: '1.4.2' }],
])('on %s it says in one line which Node it needs', async (name, given) => {
  const versions = `{ ...process.versions, ...${JSON.stringify(given).replaceAll('"', "'")} }`;
  const preload = `data:text/javascript,Object.defineProperty(process, 'versions', { value: ${versions} })`;
  const older = { env: { NODE_OPTIONS: `--import "${preload}"` } };
  const line = `petql needs Node.js 24.12 or later, and this is ${name}.`;
  expect(await runPetql(['--version'], older)).toEqual({ code: 1, stdout: '', stderr: `${line}\n` });
});
