import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
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

describe('petql with nothing configured', () => {
  test('says where GraphiQL is, which demo keys there are, and a curl line that works when pasted', async () => {
    const { output, address } = await start([]);
    expect(output.stdout).toContain(`GraphiQL   ${address}`);
    for (const key of ['demo-free', 'demo-pro', 'demo-business', 'demo-enterprise']) {
      expect(output.stdout).toMatch(new RegExp(`^ +${key} .*requests a minute`, 'm'));
    }
    const curl = /^curl .*$/m.exec(output.stdout)?.[0] ?? '';
    const { stdout } = await promisify(execFile)('sh', ['-c', curl]);
    expect(JSON.parse(stdout)).toMatchObject({
      data: { pets: expect.arrayContaining([{ id: '1', name: 'Ada', status: 'AVAILABLE' }]) },
    });
    expect(output.stderr).toBe('');
  });

  test('reads its settings from the environment, where a flag wins', async () => {
    const { address } = await start([], { env: { PORT: '1', HOST: 'localhost', LOG_LEVEL: 'silent' } });
    expect((await ask(address, '{ __typename }')).status).toBe(200);
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

  test('is refused under NODE_ENV=production when there is none', async () => {
    const { code, stderr } = await runPetql([], { env: { NODE_ENV: 'production' } });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^petql: --pet-api-url \(PET_API_URL\): expected under NODE_ENV=production; .*\n$/);
    const { address } = await start(['--sandbox'], { env: { NODE_ENV: 'production' } });
    expect((await ask(address, '{ pets(limit: 1) { id } }')).status).toBe(200);
  });
});

describe('petql sandbox', () => {
  test('runs the pet service alone', async () => {
    const petql = await startPetql(['sandbox', '--port', '0']);
    running.push(petql);
    const response = await fetch(`${petql.address}/pets`, { headers: { authorization: 'Bearer demo-free' } });
    expect(await response.json()).toHaveLength(20);
  });

  test('goes by its own settings, whatever is set for the gateway', async () => {
    const petql = await startPetql(['sandbox', '--port', '0'], { env: { PLAN: 'gold', MAX_DEPTH: 'x' } });
    running.push(petql);
    expect((await fetch(`${petql.address}/pets`)).status).toBe(401);
  });
});

describe('what is wrong ends in one clear line and exit code 1', () => {
  test.each<[string, string[], Record<string, string>, RegExp]>([
    ['a wrong flag', ['--prot', '4000'], {}, /^petql: wrong settings: --prot: no such flag.*$/],
    ['a flag without its value', ['--port'], {}, /--port: expected a value, as in --port N/],
    ['a word that is no flag', ['serve'], {}, /"serve": expected a flag/],
    ['a wrong port', ['--port', '70000'], {}, /^petql: --port: expected a whole number from 0 to 65535, got "70000"$/],
    ['a wrong address', ['--pet-api-url', 'ftp://x'], {}, /--pet-api-url: expected an http or https address/],
    [
      'an address with a password in it',
      [],
      { PET_API_URL: 'http://u:a secret@x/v1?key=a secret' },
      /^petql: PET_API_URL: expected.*, got "…@x\/v1\?…"$/,
    ],
    ['an origin with a password in it', ['--cors-origins', 'https://u:a secret@x'], {}, /--cors-origins: .*"…@x"$/],
    ['a key with a space in it', ['--pet-api-key', 'is', 'a secret'], {}, /: the word after --pet-api-key: expected/],
    ['a key behind one dash', ['-pa secret'], {}, /^petql: a flag with one dash: there is none but -h/],
    ['a Redis of another protocol', ['--redis-url', 'http://:a secret@x'], {}, /^petql: --redis-url: expected[^"]*$/],
    ['a Redis database by a name', ['--redis-url', 'redis://:a%20secret@x/petql'], {}, /--redis-url: expected[^@]*$/],
    ['a Redis password with a bare %', ['--redis-url', 'redis://:5%zz@x'], {}, /--redis-url: expected % as %25 in its/],
    ['two upstreams', ['--sandbox'], { PET_API_URL: 'http://localhost/v1' }, /--sandbox: expected no --pet-api-url/],
    [
      'an unknown host',
      ['--host', 'no.such.host.invalid'],
      {},
      /no\.such\.host\.invalid is not an address of this machine/,
    ],
    ['a sandbox file that is none', ['--sandbox-file', '/proc/none/x.db'], {}, /cannot use \/proc\/none\/x\.db/],
    [
      'every wrong setting at once',
      ['--port', 'x', '--host', '127.0.0.1'],
      { LOG_LEVEL: 'loud', UPSTREAM_TIMEOUT_MS: '-1', PET_API_KEY: 'a secret' },
      /^petql: wrong settings: PET_API_KEY: expected[^"]*; --port: .*got "x"; UPSTREAM_TIMEOUT_MS: .*got "-1"; LOG_LEVEL: .*got "loud"$/,
    ],
  ])('for %s', async (_name, args, env, line) => {
    const { code, stdout, stderr } = await runPetql(args, { env });
    expect(stderr).toMatch(/^[^\n]+\n$/);
    expect(stderr.trimEnd()).toMatch(line);
    expect(stderr).not.toContain('a secret');
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
      stderr: `petql: port ${port} on 127.0.0.1 is in use; free it, or choose another with --port (PORT)\n`,
    });
    await new Promise((resolve) => other.close(resolve));
  });
});

test('--help names every flag with its environment variable and default, and --version the version', async () => {
  const { stdout, code } = await runPetql(['--help']);
  expect(code).toBe(0);
  for (const line of [/--pet-api-url URL +PET_API_URL/, /--port N +PORT .*\(default 4000\)/, /petql sandbox/]) {
    expect(stdout).toMatch(line);
  }
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
