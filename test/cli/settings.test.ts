import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { describeConfig, readConfig } from '../../src/program/config.ts';

test.each<[string, string[], Record<string, string>, RegExp]>([
  ['a wrong flag', ['--nothing', '1'], {}, /^Unknown option '--nothing'; petql --help lists the options$/],
  ['a flag with a typing error', ['--prot', '1'], {}, /^Unknown option '--prot'; did you mean --port\? petql --help/],
  ...['PET_API_KEY', 'REDIS_URL', 'KEY_SECRET'].map((variable): [string, string[], Record<string, string>, RegExp] => [
    `an empty ${variable}`,
    [],
    { [variable]: '' },
    new RegExp(`^${variable} is empty: give it a value, or unset it$`),
  ]),
  ['a flag without its value', ['--port'], {}, /^Option '--port <value>' argument missing; petql --help/],
  ['an empty flag', ['--pet-api-key='], {}, /^--pet-api-key needs a value; petql --help/],
  ['a word that is no flag', ['a secret'], {}, /^Unexpected argument: each option starts with --; petql --help/],
  ['a wrong port', ['--port', '70000'], {}, /^--port must be a whole number from 0 to 65535, got "70000"$/],
  ['a wrong URL', ['--pet-api-url', 'ftp://x'], {}, /^--pet-api-url must be an http or https URL/],
  ['a URL with a password', [], { PET_API_URL: 'http://u:a secret@x/v1?key=a secret' }, /^PET_API_URL .*"…@x\/v1\?…"$/],
  [
    'a pattern of origins',
    ['--cors-origins', 'https://*.x'],
    {},
    /^--cors-origins must be .* or \* for any, got "https:/,
  ],
  [
    'a host with a port',
    ['--allowed-hosts', 'a.example:80'],
    {},
    /^--allowed-hosts must be host names without a port.*got "a/,
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
  ...[
    ['with a parameter of ioredis', 'redis://:a%20secret@x?commandTimeout=1'],
    ['whose nodes have several passwords', 'redis://:a%20secret@x,redis://:another@y'],
    ['of Sentinels without a name', 'redis+sentinel://:a%20secret@x:26379,y:26379'],
    ['of Sentinels with a wrong port', 'redis+sentinel://:a%20secret@x:26379,y:port/name'],
    ['of Sentinels with a parameter of ioredis', 'redis+sentinel://:a%20secret@x/name?role=slave'],
    ['whose nodes have a database', 'redis://:a%20secret@x/1,redis://:a%20secret@y/1'],
  ].map(([name, url]): [string, string[], Record<string, string>, RegExp] => [
    `a Redis ${name}`,
    ['--redis-url', url ?? ''],
    {},
    /^--redis-url must be [^"@]*$/,
  ]),
  ...['x86_64-conda-linux-gnu', 'build-7', 'pets.example', '127.0.0.1\r', '[::]', '*', '0.0.0.0:80'].map(
    (host): [string, string[], Record<string, string>, RegExp] => [
      `the HOST ${JSON.stringify(host)}, which a shell may set,`,
      [],
      { HOST: host },
      /^HOST must be an IP address .*; shells set it to other ends, and --host wins over it$/,
    ],
  ),
  ...['127.0.0.1\r', '[::1]', '*', 'localhost:80', ' '].flatMap((host) =>
    ['host', 'admin-host'].map((flag): [string, string[], Record<string, string>, RegExp] => [
      `--${flag} ${JSON.stringify(host)}`,
      [`--${flag}`, host],
      {},
      new RegExp(`^--${flag} must be an IP address .*got "[^"\r]+"$`),
    ]),
  ),
  ...[
    '"a secret"',
    "'a secret'",
    '"asecret-of-16-characters"',
    'undefined',
    'null',
    '"demo-free',
    "demo-free'",
    '<demo-free>',
    '$DEMO_KEY',
    '${DEMO_KEY}',
    '${DEMO_KEY:-x}',
  ].map((text): [string, string[], Record<string, string>, RegExp] => [
    `the API key ${text}`,
    [],
    { PET_API_KEY: text },
    /^PET_API_KEY must be .* without quotes at its ends, and not .*: undefined, null, <KEY>, \$KEY or \$\{KEY\}$/,
  ]),
  ...[
    '"asecret-of-16-characters"',
    "'a secret of the store'",
    'a secret of the store\r',
    '<demo-secret-of-the-store>',
    '$DEMO_KEY_SECRET_NAME',
    '${DEMO_KEY_SECRET}',
  ].map((text): [string, string[], Record<string, string>, RegExp] => [
    `the key secret ${JSON.stringify(text)}`,
    [],
    { KEY_SECRET: text },
    /^KEY_SECRET must have .* without quotes around them, and not .*: <KEY>, \$KEY or \$\{KEY\}$/,
  ]),
  ...['STATE_FILE', 'SANDBOX_FILE'].map((variable): [string, string[], Record<string, string>, RegExp] => [
    `a ${variable} with a carriage return`,
    [],
    { [variable]: '/state/petql.db\r' },
    new RegExp(`^${variable} must be the path of a file without control characters, got "/state/petql\\.db\\\\r"$`),
  ]),
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
])('%s is named in one line', (_name, args, env, line) => {
  const read = () => readConfig('gateway', args, env);
  expect(read).toThrow(line);
  expect(read).not.toThrow('a secret');
  expect(read).not.toThrow(/demo/i);
  expect(read).not.toThrow('\r');
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
  expect(readConfig('gateway', [], { PLAN: 'Pro' })).toMatchObject({ plan: { perMinute: 300, known: true } });
  expect(readConfig('sandbox', [], { PLAN: 'gold', MAX_DEPTH: 'x' })).toMatchObject({ port: 4000 });
});

describe('a secret in a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'petql-secrets-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const fileOf = (text: string, encoding: BufferEncoding = 'utf8') => {
    const file = join(folder, randomUUID());
    writeFileSync(file, text, encoding);
    return file;
  };
  const read = (env: Record<string, string>, ...args: string[]) => readConfig('gateway', args, env);

  test('is read without the line break at its end, and a flag wins over it', () => {
    const env = {
      PET_API_KEY_FILE: fileOf('the-key\n'),
      REDIS_URL_FILE: fileOf('redis://:pass@localhost:6379'),
      // As programs on Windows save a text.
      KEY_SECRET_FILE: fileOf('\uFEFFsixteen characters\r\n'),
    };
    const secrets = { redisUrl: 'redis://:pass@localhost:6379', keySecret: 'sixteen characters' };
    expect(read(env)).toMatchObject({ petApiKey: 'the-key', ...secrets });
    expect(read(env, '--pet-api-key', 'other')).toMatchObject({ petApiKey: 'other', ...secrets });
    expect(readConfig('sandbox', [], { PET_API_KEY_FILE: '/nowhere' })).toMatchObject({ port: 4000 });
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ['is nowhere', { KEY_SECRET_FILE: '/nowhere/at/all' }, /^KEY_SECRET_FILE cannot be read: ENOENT[^;]*$/],
    [
      'is in UTF-16',
      { PET_API_KEY_FILE: fileOf('\uFEFFa secret', 'utf16le') },
      /^PET_API_KEY_FILE cannot be read: expected a text in UTF-8$/,
    ],
    ['is empty', { PET_API_KEY_FILE: fileOf('\n') }, /^PET_API_KEY_FILE names an empty file$/],
    ['is wrong', { PET_API_KEY_FILE: fileOf('a secret') }, /^PET_API_KEY_FILE must be [^"]*$/],
    [
      'is one of two',
      { PET_API_KEY: 'x', PET_API_KEY_FILE: fileOf('x') },
      /^PET_API_KEY and PET_API_KEY_FILE cannot both/,
    ],
  ])('that %s is named in one line', (_name, env, line) => {
    expect(() => read(env)).toThrow(line);
    expect(() => read(env)).not.toThrow('a secret');
  });
});

test('a manifest may begin with a byte order mark', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'petql-manifest-')), 'manifest.json');
  writeFileSync(file, '\uFEFF{"a":"{ __typename }"}');
  const { trustedDocuments } = readConfig('gateway', ['--trusted-documents', file], {});
  rmSync(dirname(file), { recursive: true });
  expect(trustedDocuments).toEqual({ a: '{ __typename }' });
});

test.each([
  'redis://localhost/1?family=6&keyPrefix=stage:',
  'redis://user:a,b@one:7000,redis://user:a,b@two:7001',
  'rediss://one, rediss://two',
  'redis+sentinel://user:a,b@one:26379, two,[::1]:7/my.store_1?db=2&family=6&keyPrefix=stage:&sentinelPassword=c',
])('the Redis %s is taken', (url) => {
  expect(readConfig('gateway', [], { REDIS_URL: url })).toMatchObject({ redisUrl: url });
});

test('HOST may be an address or localhost, and a flag any name of the machine', () => {
  for (const host of ['::', '::1', '0.0.0.0', '10.1.2.3', 'localhost']) {
    expect(readConfig('gateway', [], { HOST: host })).toMatchObject({ host });
  }
  for (const host of ['build-7', 'fly-local-6pn', 'pets.example.']) {
    expect(readConfig('gateway', ['--host', host], { HOST: 'x86_64-conda-linux-gnu' })).toMatchObject({ host });
    expect(readConfig('sandbox', ['--host', host], {})).toMatchObject({ host });
  }
  expect(readConfig('gateway', [], { PET_API_KEY: `it's-"a"-key'` })).toMatchObject({ petApiKey: `it's-"a"-key'` });
});

test('a variable that Kubernetes sets for a service says so', () => {
  const env = { ADMIN_PORT: 'tcp://10.96.0.17:80' };
  expect(() => readConfig('gateway', [], env)).toThrow(
    /^ADMIN_PORT is what Kubernetes sets for a Service named admin: .*enableServiceLinks: false$/,
  );
  expect(() => readConfig('gateway', ['--admin-port', 'tcp://x'], {})).toThrow(/^--admin-port must be a whole number/);
});

test('a line of --help is short', () => {
  const texts = describeConfig('gateway')
    .split('\n')
    .map((row) => row.split(/ {2,}/).at(-1) ?? '');
  expect(texts.length).toBeGreaterThan(20);
  for (const text of texts) expect(text.length).toBeLessThanOrEqual(75);
});
