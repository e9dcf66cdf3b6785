import { readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { GatewayOptions } from '../../src/index.ts';
import { environmentProxy } from '../../src/program/environment-proxy.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import type { HttpProxy, ProxyFault } from '../support/http-proxy.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { runPetql, startPetql } from '../support/run-petql.ts';
import { CERTIFICATE_FILE, freePort } from '../support/serve.ts';
import { HANGS } from '../support/pet-api/fault.ts';
import { createTestPetApi } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';
import type { Reply } from '../support/transports.ts';
import { until } from '../support/until.ts';
import { post } from '../support/client.ts';

const KEY = 'demo-pro';
const CREDENTIALS = 'petql:pa ss@w/ord%';
const IN_URL = CREDENTIALS.split(':').map(encodeURIComponent).join(':');
const READ = '{ pets(limit: 1) { id } }';
const USED = '{ rateLimit { windows { used } } }';
const CREATE = 'mutation { createPet(input: { name: "Neo", categoryId: 1, idempotencyKey: "once" }) { pet { name } } }';
const CREATED = { createPet: { pet: { name: 'Neo' } } };
const TIMEOUT_MS = 300;

const trusted = getCACertificates('default');
beforeAll(() => setDefaultCACertificates([...trusted, readFileSync(CERTIFICATE_FILE, 'utf8')]));
afterAll(() => setDefaultCACertificates(trusted));

/** A gateway that reaches the pet API through a proxy. */
async function start(protocol: 'http' | 'https', credentials?: string, options: Partial<GatewayOptions> = {}) {
  const petApi = createTestPetApi();
  const server = await petApi.listen(protocol);
  const proxy = await startHttpProxy(credentials);
  const { log, lines } = createMemoryLog();
  const gateway = createGateway({
    petApiUrl: server.url,
    petApiKey: KEY,
    plan: 'pro',
    proxy: proxy.origin,
    upstreamTimeoutMs: TIMEOUT_MS,
    maxWaitMs: TIMEOUT_MS,
    log,
    ...options,
  });
  onTestFinished(async () => {
    await gateway.close();
    await server[Symbol.asyncDispose]();
    await proxy[Symbol.asyncDispose]();
  });
  const run = async (document: string) => (await gateway.execute({ document, cacheControl: 'no-cache' })) as Reply;
  return { petApi, server, proxy, lines, run };
}

const withCredentials = ({ origin }: HttpProxy) => origin.replace('//', `//${IN_URL}@`);

describe.each(['https', 'http'] as const)('over a proxy to an %s pet API', (protocol) => {
  test('calls go through it alone, with its credentials, and it sees no API key of a tunnel', async () => {
    await using proxy = await startHttpProxy(CREDENTIALS);
    const { petApi, server, run } = await start(protocol, '', { proxy: withCredentials(proxy) });
    expect(await run(CREATE)).toMatchObject({ data: CREATED });
    expect(await run(READ)).toMatchObject({ data: { pets: [{ id: '1' }] } });
    expect(petApi.log.map(({ key, kind }) => [key, kind])).toEqual([
      [KEY, 'create'],
      [KEY, 'list'],
    ]);

    const { host } = new URL(server.url);
    const tunnel = { method: 'CONNECT', target: host, authorization: undefined };
    const passed = { target: expect.stringContaining(`${server.url}/pets`), authorization: `Bearer ${KEY}` };
    const calls = [
      { method: 'POST', ...passed },
      { method: 'GET', ...passed },
    ];
    // The first call of a key has a connection of its own.
    expect(proxy.requests).toEqual(protocol === 'https' ? [tunnel, tunnel] : calls);
  });

  test('a proxy that wants credentials: nothing was sent, and the error and the log say what to do', async () => {
    const { petApi, proxy, lines, run } = await start(protocol, CREDENTIALS, {});
    const { errors = [] } = await run(CREATE);
    expect(codesOf({ errors })).toEqual(['DOWNSTREAM_SERVICE_ERROR']);
    expect(errors[0]?.message).toMatch(
      /^The proxy .* rejects .* 407; nothing was sent\. Set the user and password in its URL\.$/,
    );
    expect(lines).toContainEqual(expect.objectContaining({ level: 40, reason: 'unreachable', code: 'PROXY_407' }));
    expect([petApi.log, proxy.requests.length > 0]).toEqual([[], true]);
    const { data } = await run(USED);
    expect(data?.['rateLimit'].windows).toEqual([{ used: 0 }, { used: 0 }]);
  });
});

test.each([
  [
    'https',
    403,
    'DOWNSTREAM_SERVICE_ERROR',
    /^The proxy before the pet API rejects the call with 403; nothing was sent/,
  ],
  [
    'http',
    403,
    'DOWNSTREAM_SERVICE_ERROR',
    /^The pet API did not get the call: a proxy or a firewall before it responded with status 403\.$/,
  ],
  ['http', 502, 'OUTCOME_UNKNOWN', /^The pet API responded with status 502\. Try again later\.$/],
] as const)(
  'over a proxy to an %s pet API, its %d is no word about the key',
  async (protocol, status, codeOfCreate, message) => {
    const { proxy, lines, run } = await start(protocol);
    proxy.setFault(status);
    const replies = [await run(READ), await run(CREATE)];
    expect(replies.map(codesOf)).toEqual([['DOWNSTREAM_SERVICE_ERROR'], [codeOfCreate]]);
    expect(replies[0]?.errors?.[0]?.message).toMatch(message);
    expect(JSON.stringify(lines)).not.toMatch(/forbids|banned|rejected/);

    proxy.setFault(undefined);
    expect(await run(READ)).toMatchObject({ data: { pets: [{ id: '1' }] } });
  },
);

describe('a tunnel that fails was not sent:', () => {
  test.each<[string, ProxyFault, string, RegExp]>([
    ['the proxy forbids it', 403, 'DOWNSTREAM_SERVICE_ERROR', /rejects the call with 403; nothing was sent\. Check/],
    [
      'the proxy finds the credentials wrong',
      401,
      'DOWNSTREAM_SERVICE_ERROR',
      /nothing was sent\. Set the user and pass/,
    ],
    ['the proxy cuts the connection', 'cut', 'DOWNSTREAM_SERVICE_ERROR', /nothing was sent/],
    ['the tunnel ends in the TLS handshake', 'cut-tunnel', 'DOWNSTREAM_SERVICE_ERROR', /nothing was sent/],
    ['the proxy hangs', 'hang', 'GATEWAY_TIMEOUT', /took too long/],
  ])('%s', async (_name, fault, code, message) => {
    const { petApi, proxy, run } = await start('https');
    proxy.setFault(fault);
    const failed = await run(CREATE);
    expect([codesOf(failed), failed.errors?.[0]?.message]).toEqual([[code], expect.stringMatching(message)]);
    expect(petApi.log).toEqual([]);

    proxy.setFault(undefined);
    expect(await run(CREATE)).toMatchObject({ data: CREATED });
    const { data } = await run(USED);
    expect(data?.['rateLimit'].windows).toEqual([{ used: 1 }, { used: 1 }]);
    expect(petApi.log.map(({ kind }) => kind)).toEqual(['create']);
  });

  test('the proxy refuses connections', async () => {
    const { petApi, run } = await start('https', '', { proxy: `http://127.0.0.1:${await freePort()}` });
    const { errors } = await run(CREATE);
    expect(errors?.[0]?.message).toMatch(/nothing was sent/);
    expect(petApi.log).toEqual([]);
  });

  test('the proxy cuts the first tunnel, and a create is sent once through the next one', async () => {
    const { petApi, proxy, run } = await start('https', '', { maxWaitMs: 5_000 });
    proxy.setFault('cut');
    const creating = run(CREATE);
    await until(() => proxy.requests.length > 0);
    proxy.setFault(undefined);
    expect(await creating).toMatchObject({ data: CREATED });
    expect(petApi.log.length).toBe(1);
  });
});

test.each(['https', 'http'] as const)(
  'a create to an %s pet API whose connection breaks after the request is unknown, and is not sent again',
  async (protocol) => {
    const { petApi, proxy, run } = await start(protocol, '', { upstreamTimeoutMs: 5_000, maxWaitMs: 5_000 });
    petApi.fault = HANGS;
    const creating = run(CREATE);
    await until(() => petApi.log.length > 0);
    proxy.cut();
    expect(codesOf(await creating)).toEqual(['OUTCOME_UNKNOWN']);
    petApi.fault = undefined;
    expect(codesOf(await run(CREATE))).toEqual(['OUTCOME_UNKNOWN']);
    expect(petApi.log.map(({ kind }) => kind)).toEqual(['create']);
  },
);

test('a create to an http pet API through a proxy that hangs is unknown: the proxy may have passed it on', async () => {
  const { petApi, proxy, run } = await start('http');
  proxy.setFault('hang');
  expect(codesOf(await run(CREATE))).toEqual(['OUTCOME_UNKNOWN']);
  expect([proxy.requests.length, petApi.log.length]).toEqual([1, 0]);
});

test('a proxy that hangs holds no connection for long', async () => {
  const { proxy, run } = await start('https');
  proxy.setFault('hang');
  await run(READ);
  expect(proxy.requests.length).toBeGreaterThan(0);
  await expect.poll(() => proxy.connections, { timeout: 10_000 }).toBe(0);
});

describe('the program', () => {
  async function startOver(env: (proxy: HttpProxy, host: string) => Record<string, string>) {
    const petApi = createTestPetApi();
    const server = await petApi.listen('https');
    const proxy = await startHttpProxy(CREDENTIALS);
    const petql = await startPetql(['--port', '0', '--pet-api-url', server.url, '--pet-api-key', KEY], {
      env: { NODE_EXTRA_CA_CERTS: CERTIFICATE_FILE, ...env(proxy, new URL(server.url).hostname) },
    });
    onTestFinished(async () => {
      petql.kill('SIGKILL');
      await petql.exited;
      await proxy[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    });
    return { petApi, proxy, petql };
  }

  test('follows HTTPS_PROXY, and says so without its credentials', async () => {
    const { petApi, proxy, petql } = await startOver((to) => ({ HTTPS_PROXY: withCredentials(to), HTTP_PROXY: 'x' }));
    expect((await post(petql.address, READ)).data).toMatchObject({ pets: [{ id: '1' }] });
    expect([proxy.requests.length, petApi.log.length]).toEqual([1, 1]);

    const { host } = new URL(proxy.origin);
    expect(JSON.parse(petql.output.stderr.split('\n')[0] ?? '')).toMatchObject({ msg: 'listening', proxy: host });
    expect(petql.output.stdout).toMatch(new RegExp(`^Proxy +${host}$`, 'm'));
    expect(petql.output.stdout + petql.output.stderr).not.toMatch(/pa.{1,3}ss|ord/);
  });

  test('goes past it to a host of no_proxy, and says nothing of it', async () => {
    const { petApi, proxy, petql } = await startOver((to, host) => ({ https_proxy: to.origin, no_proxy: host }));
    expect((await post(petql.address, READ)).errors).toBeUndefined();
    expect([proxy.requests.length, petApi.log.length]).toEqual([0, 1]);
    expect(petql.output.stderr + petql.output.stdout).not.toMatch(/proxy/i);
  });

  test('does not start with a proxy that is no URL, and does not repeat it', async () => {
    const args = ['--port', '0', '--pet-api-url', 'http://127.0.0.1:9/v1'];
    const { code, stderr } = await runPetql(args, { env: { HTTP_PROXY: 'petql:secret@proxy:3128' } });
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^petql: HTTP_PROXY must be a URL such as http:[^\n]*\n$/),
    ]);
    expect(stderr).not.toContain('secret');
  });

  test('reaches its own sandbox without it', async () => {
    const petql = await startPetql(['--port', '0'], { env: { HTTP_PROXY: `http://127.0.0.1:${await freePort()}` } });
    onTestFinished(() => petql.kill('SIGKILL'));
    expect((await post(petql.address, READ)).errors).toBeUndefined();
  });
});

test.each<[petApiUrl: string, noProxy: string, isProxied: boolean]>([
  ['https://pets.example/v1', '', true],
  ['https://pets.example/v1', 'other.example, ets.example', true],
  ['https://pets.example/v1', 'other.example,PETS.example', false],
  ['https://pets.example/v1', 'a b pets.example.', false],
  ['https://api.pets.example/v1', 'pets.example', false],
  ['https://api.pets.example/v1', '.pets.example', false],
  ['https://pets.example/v1', '.pets.example', false],
  ['https://pets.example/v1', '*.pets.example', true],
  ['https://api.pets.example/v1', '*.pets.example', false],
  ['https://pets.example/v1', ' * ', false],
  ['https://pets.example/v1', '*:80', true],
  ['https://pets.example/v1', 'pets.example:443', false],
  ['https://pets.example:8443/v1', 'pets.example:443', true],
  ['http://pets.example/v1', 'pets.example:80', false],
  ['http://[fd00::1]/v1', 'fd00::1', false],
  ['http://[fd00::1]:81/v1', '[fd00::1]:80', true],
  ['http://[fd00::1]:81/v1', '[fd00::1]:81', false],
  ['http://127.0.0.1:8080/v1', '127.0.0.0/8', false],
  ['http://10.1.2.3/v1', 'pets.example, 10.0.0.0/8', false],
  ['https://10.1.2.3/v1', '10.1.2.0/31', true],
  ['http://10.1.2.3/v1', '0.0.0.0/0', false],
  ['http://[fd00::1]/v1', 'FD00::/8', false],
  ['http://[fd00::1]/v1', '[fd00::]/64', false],
  ['http://[fe80::1]/v1', 'fd00::/8', true],
  ['http://[fd00::1]/v1', '0.0.0.0/0', true],
  ['http://10.pets.example/v1', '10.0.0.0/8', true],
  ['http://10.1.2.3/v1', '10.0.0.0/33', true],
  ['http://10.1.2.3/v1', '10.0.0.0/', true],
  ['http://10.1.2.3/v1', 'pets/8', true],
])('to %s with NO_PROXY=%j a call is proxied: %s', (petApiUrl, noProxy, isProxied) => {
  const env = { HTTP_PROXY: 'http://proxy:3128', HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: noProxy };
  expect(environmentProxy(new URL(petApiUrl), env) !== undefined).toBe(isProxied);
});

test.each([['http://proxy:3128/path'], ['http://user:5%zz@proxy:3128'], ['socks5://proxy:1080'], ['proxy:3128']])(
  'the option %s is rejected and not repeated',
  (proxy) => {
    const options = { petApiUrl: 'http://pets.example/v1', proxy };
    expect(() => createGateway(options)).toThrow(
      /^createGateway: proxy must be a URL such as http:[^,]*, with % as %25 in[^,]*$/,
    );
  },
);
