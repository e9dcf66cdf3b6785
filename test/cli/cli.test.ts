import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { describeConfig, readConfig } from '../../src/config.ts';
import { runPetql, startPetql } from '../support/run-petql.ts';
import type { PetqlProcess, RunOptions } from '../support/run-petql.ts';
import { startRecordedSandbox } from '../support/start-recorded-sandbox.ts';

const running: PetqlProcess[] = [];

afterEach(async () => {
  for (const petql of running.splice(0)) {
    petql.kill('SIGKILL');
    await petql.exited;
  }
});

async function start(args: readonly string[], options?: RunOptions): Promise<PetqlProcess> {
  const petql = await startPetql(['--port', '0', ...args], options);
  running.push(petql);
  return petql;
}

function ask(endpoint: string, query: string, key = 'demo-free'): Promise<Response> {
  return fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ query }),
  });
}

/** Runs the curl line of a banner in a shell. */
async function paste(banner: string): Promise<unknown> {
  const curl = /^curl .*$/m.exec(banner)?.[0] ?? '';
  const { stdout } = await promisify(execFile)('sh', ['-c', curl]);
  return JSON.parse(stdout);
}

describe('petql with nothing configured', () => {
  test('says where GraphiQL is, which demo keys there are, and a curl line that works when pasted', async () => {
    const { output, address } = await start([]);
    expect(output.stdout).toContain(`GraphiQL   ${address}`);
    for (const key of ['demo-free', 'demo-pro', 'demo-business', 'demo-enterprise']) {
      expect(output.stdout).toMatch(new RegExp(`^ +${key} .*calls per minute`, 'm'));
    }
    expect(await paste(output.stdout)).toMatchObject({
      data: { pets: expect.arrayContaining([{ id: '1', name: 'Ada', status: 'AVAILABLE' }]) },
    });
    expect(output.stderr).toBe('');
  });
});

describe('petql over another service', () => {
  test('brings a key of its own, so that the caller needs none', async () => {
    const sandbox = await startRecordedSandbox();
    const { address, output } = await start(['--pet-api-url', sandbox.url, '--pet-api-key', 'demo-pro']);
    expect(await (await ask(address, '{ pets(limit: 1) { id } }', 'of the visitor')).json()).toMatchObject({
      data: { pets: [{ id: '1' }] },
    });
    expect(sandbox.calls.map(({ key }) => key)).toEqual(['demo-pro']);
    expect(output.stdout + output.stderr).not.toContain('demo-pro');
    await sandbox.close();
  });

  test('prints its whole base URL, and asks for no API key where the server has one', async () => {
    const sandbox = await startRecordedSandbox();
    const { output, address } = await start(['--pet-api-url', sandbox.url, '--pet-api-key', 'demo-pro']);
    const page = await (await fetch(address, { headers: { accept: 'text/html' } })).text();
    expect(page).toContain('GraphiQL');
    expect(page).not.toMatch(/Authorization|YOUR_API_KEY/);
    expect(output.stdout).toMatch(new RegExp(`^Upstream +${sandbox.url}$`, 'm'));
    expect(output.stdout).not.toMatch(/authorization|YOUR_API_KEY/);
    expect(await paste(output.stdout)).toMatchObject({ data: { pets: [{}, {}, {}] } });
    const { output: visitors } = await start(['--pet-api-url', sandbox.url]);
    expect(visitors.stdout).toContain("-H 'authorization: Bearer YOUR_API_KEY'");
    await sandbox.close();
  });

  test.each<[string, object]>([
    ['GraphQL Code Generator', { add: 'mutation { __typename }', one: '{ pets(limit: 3) { id } }' }],
    [
      'Apollo',
      {
        format: 'apollo-persisted-query-manifest',
        operations: [{ id: "it's", body: 'query A { pets(limit: 3) { id } }' }],
      },
    ],
  ])('with trusted documents only, as of %s, prints a request for one of them', async (_name, manifest) => {
    const folder = await mkdtemp(join(tmpdir(), 'petql-banner-'));
    const file = join(folder, 'manifest.json');
    await writeFile(file, JSON.stringify(manifest));
    const { output } = await start(['--trusted-documents', file, '--require-trusted-documents']);
    expect(await paste(output.stdout)).toMatchObject({ data: { pets: [{}, {}, {}] } });
    await rm(folder, { recursive: true });
  });
});

describe('petql sandbox', () => {
  test('runs the pet service alone', async () => {
    const petql = await startPetql(['sandbox', '--port', '0']);
    running.push(petql);
    const response = await fetch(`${petql.address}/pets`, { headers: { authorization: 'Bearer demo-free' } });
    expect(await response.json()).toHaveLength(20);
  });
});

describe('a wrong setting is named in one line', () => {
  test.each<[string, string[], Record<string, string>, RegExp]>([
    ['a wrong flag', ['--prot', '4000'], {}, /^Unknown option '--prot'; petql --help lists the options$/],
    ['a flag without its value', ['--port'], {}, /^Option '--port <value>' argument missing; petql --help/],
    ['an empty flag', ['--pet-api-key='], {}, /^--pet-api-key needs a value; petql --help/],
    ['a word that is no flag', ['a secret'], {}, /^Unexpected argument: each option starts with --; petql --help/],
    ['a wrong port', ['--port', '70000'], {}, /^--port must be a whole number from 0 to 65535, got "70000"$/],
    ['a wrong URL', ['--pet-api-url', 'ftp://x'], {}, /^--pet-api-url must be an http or https URL/],
    [
      'a URL with a password',
      [],
      { PET_API_URL: 'http://u:a secret@x/v1?key=a secret' },
      /^PET_API_URL .*"…@x\/v1\?…"$/,
    ],
    ['an origin with a password', ['--cors-origins', 'https://u:a secret@x'], {}, /^--cors-origins must be .*"…@x"$/],
    ['a key with a space in it', ['--pet-api-key', 'is', 'a secret'], {}, /^Unexpected argument/],
    ['a key behind one dash', ['-pa secret'], {}, /^Unknown option '-p'; petql --help/],
    ['a Redis of another protocol', ['--redis-url', 'http://:a secret@x'], {}, /^--redis-url must be a URL[^"]*$/],
    ['a Redis database by a name', ['--redis-url', 'redis://:a%20secret@x/petql'], {}, /^--redis-url must be [^@]*$/],
    [
      'a Redis password with a bare %',
      ['--redis-url', 'redis://:5%zz@x'],
      {},
      /^--redis-url must be a URL .* with % as %25 in its/,
    ],
    [
      'two upstreams',
      ['--sandbox'],
      { PET_API_URL: 'http://localhost/v1' },
      /^--sandbox cannot be used with --pet-api-url/,
    ],
    [
      'trusted documents only, without any',
      ['--require-trusted-documents'],
      {},
      /^--require-trusted-documents needs --tru/,
    ],
    [
      'no upstream in production',
      [],
      { NODE_ENV: 'production' },
      /^--pet-api-url \(PET_API_URL\) is required when NODE_ENV/,
    ],
    [
      'every wrong value at once',
      ['--port', 'x', '--host', '127.0.0.1'],
      { LOG_LEVEL: 'loud', UPSTREAM_TIMEOUT_MS: '-1', PET_API_KEY: 'a secret' },
      /^PET_API_KEY must [^"]*; --port .*got "x"; UPSTREAM_TIMEOUT_MS .*got "-1"; LOG_LEVEL .*got "loud"$/,
    ],
  ])('for %s', (_name, args, env, line) => {
    const read = () => readConfig('gateway', args, env);
    expect(read).toThrow(line);
    expect(read).not.toThrow('a secret');
  });
});

test('a flag wins over the environment, which wins over the default; an empty variable is none', () => {
  const env = { PORT: '1', HOST: 'localhost', PLAN: '', CORS_ORIGINS: 'https://a.example/, http://b.example' };
  expect(readConfig('gateway', ['--port', '2'], env)).toMatchObject({
    port: 2,
    host: 'localhost',
    plan: { perMinute: 60, known: false },
    corsOrigins: ['https://a.example', 'http://b.example'],
    logLevel: 'info',
  });
  expect(readConfig('sandbox', [], { PLAN: 'gold', MAX_DEPTH: 'x' })).toMatchObject({ port: 4000 });
});

describe('what is wrong ends in one clear line and exit code 1', () => {
  test.each<[string, string[], RegExp]>([
    ['a wrong setting', ['--port', 'x'], /^petql: --port must be a whole number from 0 to 65535, got "x"$/],
    [
      'an unknown host',
      ['--host', 'no.such.host.invalid'],
      /^petql: no\.such\.host\.invalid is not an address of this machine/,
    ],
    ['a sandbox file that is none', ['--sandbox-file', '/proc/none/x.db'], /^petql: .*cannot use \/proc\/none\/x\.db/],
  ])('for %s', async (_name, args, line) => {
    const { code, stdout, stderr } = await runPetql(args);
    expect(stderr).toMatch(/^[^\n]+\n$/);
    expect(stderr.trimEnd()).toMatch(line);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });

  test.each([[[]], [['sandbox']]])('for a port in use, with petql %j', async (command) => {
    const other = createServer();
    await new Promise<void>((resolve) => {
      other.listen(0, '127.0.0.1', resolve);
    });
    const { port } = other.address() as AddressInfo;
    expect(await runPetql([...command, '--port', String(port)])).toEqual({
      code: 1,
      stdout: '',
      stderr: `petql: port ${port} on 127.0.0.1 is in use; choose another with --port (PORT)\n`,
    });
    await new Promise((resolve) => other.close(resolve));
  });
});

test.each(['22.21.0', '24.11.1'])('on Node %s it says in one line which Node it needs', async (version) => {
  const versions = `{ ...process.versions, node: '${version}' }`;
  const preload = `data:text/javascript,Object.defineProperty(process, 'versions', { value: ${versions} })`;
  const older = { env: { NODE_OPTIONS: `--import "${preload}"` } };
  const line = `petql needs Node.js 24.12 or later, and this is ${version}.`;
  expect(await runPetql(['--version'], older)).toEqual({ code: 1, stdout: '', stderr: `${line}\n` });
});

test('--help names every flag with its environment variable and default, and --version the version', async () => {
  const { stdout, code } = await runPetql(['--help']);
  expect(code).toBe(0);
  for (const line of [/--pet-api-url URL +PET_API_URL +Base URL/, /--port N +PORT .*\(4000\)$/m, /petql sandbox/]) {
    expect(stdout).toMatch(line);
  }
  const help = describeConfig('gateway')
    .split('\n')
    .map((row) => row.split(/ {2,}/).at(-1) ?? '');
  for (const text of help) expect(text.length).toBeLessThanOrEqual(75);
  expect((await runPetql(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each(['SIGTERM', 'SIGINT'] as const)(
  'on %s, new connections are refused, a running operation is answered, and the exit code is 0',
  async (signal) => {
    const sandbox = await startRecordedSandbox();
    const petql = await start(['--pet-api-url', sandbox.url]);
    const called = new Promise<void>((resolve) => {
      sandbox.setFault(() => {
        resolve();
        return { delayMs: 500 };
      });
    });
    const answer = ask(petql.address, '{ pets(limit: 1) { id } }');
    await called;
    petql.kill(signal);
    await refused(petql.address);
    const response = await answer;
    expect(await response.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });
    expect(response.headers.get('connection')).toBe('close');
    expect(await petql.exited).toBe(0);
    await sandbox.close();
  },
);

/** Resolves once a new connection is refused. */
async function refused(endpoint: string): Promise<void> {
  for (;;) {
    const failed = await fetch(endpoint, { headers: { connection: 'close' } }).then(
      () => false,
      () => true,
    );
    if (failed) return;
  }
}
