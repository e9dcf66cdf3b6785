import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { GatewayOptions } from '../../src/index.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { rawResponse, serveBytes } from '../support/serve-bytes.ts';
import type { RawRequest, RawResponse } from '../support/serve-bytes.ts';
import { codesOf } from '../support/transports.ts';
import type { Reply } from '../support/transports.ts';
import { wirePet } from '../support/pet-api/wire-pet.ts';

const DOWN = 'DOWNSTREAM_SERVICE_ERROR';
const LIST = '{ pets { id name categoryId status } }';
const CREATE =
  'mutation { createPet(input: { name: "Ada", categoryId: 1 }) { pet { id name } userErrors { message } } }';
const ADA = { id: 7, name: 'Ada', categoryId: 1, status: 'sold' };
const INVALID = { code: 'bad', message: 'no such category', status: 400 };
const READ_ADA = { id: '7', name: 'Ada', categoryId: '1', status: 'SOLD' };

/** A gateway over a server that answers with bytes. */
async function start(respond: (request: RawRequest) => RawResponse | undefined, options: Partial<GatewayOptions> = {}) {
  const server = await serveBytes(respond);
  const { log, lines } = createMemoryLog();
  const gateway = createGateway({ petApiUrl: server.url, log, ...options });
  onTestFinished(async () => {
    await gateway.close();
    await server[Symbol.asyncDispose]();
  });
  const run = async (document: string, apiKey = 'key') =>
    (await gateway.execute({ document, apiKey, cacheControl: 'no-cache' })) as Reply;
  return { server, lines, run };
}

const bytesOf = (text: string) => text.match(/./gs) ?? [];
const isCreate = ({ target }: RawRequest) => target.startsWith('POST');
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** How a server sends a status and a body. */
type Way = (status: number, json: string) => RawResponse;
const coded =
  (coding: string, encode: (body: string) => Buffer): Way =>
  (status, json) =>
    rawResponse(status, encode(json), [`Content-Encoding: ${coding}`]);

const READ: [name: string, way: Way][] = [
  ['100 Continue before it', (status, json) => [Buffer.concat([Buffer.from(CONTINUE), rawResponse(status, json)])]],
  ['100 Continue some time before it', (status, json) => [CONTINUE, 20, rawResponse(status, json)]],
  [
    'two 100s with headers, byte by byte',
    (status, json) => [...bytesOf(`HTTP/1.1 100 OK\r\nServer: IIS\r\n\r\n${CONTINUE}`), rawResponse(status, json)],
  ],
  [
    '102 and 103 before it',
    (status, json) => ['HTTP/1.1 102 Any\r\n\r\n', 'HTTP/1.1 103 Any\r\nLink: <x>\r\n\r\n', rawResponse(status, json)],
  ],
  ['a byte order mark', (status, json) => rawResponse(status, `\uFEFF${json}`)],
  ['gzip', coded('gzip', gzipSync)],
  ['x-gzip in capitals', coded('X-GZIP', gzipSync)],
  ['deflate', coded('deflate', deflateSync)],
  ['deflate without its zlib header', coded('deflate', deflateRawSync)],
  ['br', coded('br', brotliCompressSync)],
  ['zstd', coded('zstd', zstdCompressSync)],
  ['gzip twice', coded('gzip, gzip', (body) => gzipSync(gzipSync(body)))],
  ['gzip and identity', coded('gzip, identity', gzipSync)],
  ['gzip, and then br', coded('gzip ,BR', (body) => brotliCompressSync(gzipSync(body)))],
  [
    'two headers of codings',
    (status, json) =>
      rawResponse(status, gzipSync(deflateSync(json)), ['Content-Encoding: deflate', 'Content-Encoding: gzip']),
  ],
  ['a Content-Encoding that is a charset', coded('utf-8', (body) => Buffer.from(body))],
  [
    'chunks of one byte',
    (status, json) =>
      `HTTP/1.1 ${status} Any\r\nTransfer-Encoding: chunked\r\n\r\n${bytesOf(json)
        .map((one) => `1\r\n${one}\r\n`)
        .join('')}0\r\n\r\n`,
  ],
];

describe.each(READ)('a response with %s is read:', (_name, way) => {
  test('a list, and 20 creates are 20 successes on kept connections', async () => {
    const { server, run } = await start((request) =>
      isCreate(request) ? way(201, JSON.stringify(ADA)) : way(200, JSON.stringify([ADA])),
    );
    for (let call = 0; call < 3; call += 1) expect((await run(LIST)).data).toEqual({ pets: [READ_ADA] });
    for (let call = 0; call < 20; call += 1) {
      expect((await run(CREATE)).data?.['createPet'].pet).toEqual({ id: '7', name: 'Ada' });
    }
    expect(server.requests.filter(isCreate)).toHaveLength(20);
    expect(server.connections).toBeLessThanOrEqual(4);
  });

  test('the text of a 400', async () => {
    const { run } = await start(() => way(400, JSON.stringify(INVALID)));
    expect((await run(CREATE)).data?.['createPet'].userErrors).toEqual([{ message: INVALID.message }]);
  });
});

test('bytes of a 100 within a body stay in it', async () => {
  const name = 'HTTP/1.1 100 Continue';
  const whole = rawResponse(200, JSON.stringify([{ ...ADA, name }])).toString();
  const at = whole.indexOf(name);
  const { run } = await start(() => [whole.slice(0, at), whole.slice(at)]);
  expect((await run(LIST)).data).toEqual({ pets: [{ ...READ_ADA, name }] });
});

test.each([
  ['1e16', '10000000000000000'],
  ['9.007199254740993e15', '9007199254740993'],
  ['9007199254740993.0', '9007199254740993'],
  ['-9223372036854775808', '-9223372036854775808'],
])('the id %s is %s', async (text, id) => {
  const { run } = await start(() => rawResponse(200, `[${wirePet({ id: text, categoryId: '1e0' })}]`));
  expect((await run(LIST)).data).toMatchObject({ pets: [{ id, name: 'Ada', categoryId: '1' }] });
});

test.each(['1e-400', '0.1e-330', '1.5', '9007199254740992.5', '1e19', '9223372036854775808', '-1e400'])(
  'the id %s is none',
  async (text) => {
    const { run } = await start(() => rawResponse(200, `[${wirePet({ id: text })}]`));
    expect(codesOf(await run(LIST))).toEqual([DOWN]);
  },
);

test('2,000 levels beside an id with 19 digits are read', async () => {
  const deep = `${'['.repeat(2_000)}${']'.repeat(2_000)}`;
  const { run } = await start(() =>
    rawResponse(200, `[{"id":9007199254740993,"name":"Ada","categoryId":1,"tags":${deep}}]`),
  );
  expect((await run('{ pets { id } }')).data).toEqual({ pets: [{ id: '9007199254740993' }] });
});

const TIMEOUT_MS = 300;
const PROTOCOL: unknown = expect.stringMatching(/^Response does not match the HTTP\/1\.1 protocol \(.+\)$/);
const FAILING: [name: string, response: RawResponse, line: object][] = [
  ['SSH', 'SSH-2.0-OpenSSH_9.9\r\n\r\n', { reason: 'malformed', problem: PROTOCOL }],
  [
    'HTTP/2',
    Buffer.from('000012040000000000000300000080000400010000000500ffffff', 'hex'),
    { reason: 'malformed', problem: PROTOCOL },
  ],
  ['line feeds alone', 'HTTP/1.1 200 OK\nContent-Length: 2\n\n[]', { reason: 'malformed', problem: PROTOCOL }],
  [
    'a folded header',
    'HTTP/1.1 200 OK\r\nP3P: a,\r\n b\r\nContent-Length: 2\r\n\r\n[]',
    { reason: 'malformed', problem: PROTOCOL },
  ],
  [
    'a chunk without a size',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
    { reason: 'malformed', problem: PROTOCOL },
  ],
  ['one length twice', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n[]', { reason: 'malformed' }],
  [
    '101',
    'HTTP/1.1 101 Any\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    { reason: 'broken', code: 'UND_ERR_SOCKET' },
  ],
  [
    'gzip that is none',
    rawResponse(200, '[]', ['Content-Encoding: gzip']),
    { reason: 'miscoded', code: 'Z_DATA_ERROR', problem: 'the body is not in gzip, its Content-Encoding' },
  ],
  [
    'zstd that is cut',
    rawResponse(200, zstdCompressSync('[1,2,3]').subarray(0, 12), ['Content-Encoding: zstd']),
    { reason: 'miscoded', problem: 'the body is not in zstd, its Content-Encoding' },
  ],
  [
    'gzip once, named twice',
    rawResponse(200, gzipSync('[]'), ['Content-Encoding: gzip, gzip']),
    { reason: 'miscoded', problem: 'the body is not in gzip, its Content-Encoding' },
  ],
  [
    'a coding that petql does not read',
    rawResponse(200, Buffer.from([0xff, 1, 2, 3]), ['Content-Encoding: Snappy']),
    { reason: 'miscoded', problem: 'the body is in snappy, a Content-Encoding that petql does not read' },
  ],
  [
    'a coding with an odd name',
    rawResponse(200, Buffer.from([0xff, 1, 2, 3]), ['Content-Encoding: "secret"']),
    { reason: 'miscoded', problem: 'the body is in an unknown coding, a Content-Encoding that petql does not read' },
  ],
  [
    'a hundred codings',
    rawResponse(200, gzipSync('[]'), [`Content-Encoding: ${Array(100).fill('gzip').join()}`]),
    { reason: 'miscoded', problem: 'the body has over 5 codings' },
  ],
  [
    '20 MB in gzip',
    rawResponse(200, gzipSync(Buffer.alloc(20_000_000)), ['Content-Encoding: gzip']),
    { reason: 'too-large', problem: 'the body is over 1 MiB when it is decoded' },
  ],
  ['2 MB', rawResponse(200, Buffer.alloc(2_000_000, ' ')), { reason: 'too-large', problem: 'the body is over 1 MiB' }],
  [
    'headers of 20 KB',
    rawResponse(200, '[]', [`X: ${'x'.repeat(20_000)}`]),
    { reason: 'too-large', code: 'UND_ERR_HEADERS_OVERFLOW' },
  ],
  ['nothing', [], { reason: 'timeout', problem: `no response within ${TIMEOUT_MS} ms` }],
  [
    'half a body',
    ['HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n['],
    { reason: 'timeout', problem: `no end of the body within ${TIMEOUT_MS} ms` },
  ],
  ['a 100 alone', [CONTINUE], { reason: 'timeout', problem: `no response within ${TIMEOUT_MS} ms` }],
];

describe.each(FAILING)('a response of %s fails, and the log says why:', (_name, response, line) => {
  test.each([
    ['a list', LIST, [DOWN, 'GATEWAY_TIMEOUT'], 'calls to the pet API fail'],
    ['a create', CREATE, ['OUTCOME_UNKNOWN'], 'a write had no clear response: it may have happened'],
  ])('%s', async (_what, document, codes, msg) => {
    // A key is proven by its first list.
    const { server, lines, run } = await start(({ number }) => (number === 1 ? rawResponse(200, '[]') : response), {
      upstreamTimeoutMs: TIMEOUT_MS,
      maxWaitMs: 50,
    });
    await run(LIST);
    const failed = await run(document);
    expect(codes).toContain(codesOf(failed)[0]);
    const logged = lines.filter((each) => each['msg'] === msg);
    expect(logged).toMatchObject([line]);
    expect(`${JSON.stringify(failed)}${JSON.stringify(logged)}`).not.toMatch(
      new RegExp(`SSH|P3P|${new URL(server.url).port}`),
    );
  });
});

test('an address that answers in another protocol is no broken connection to its clients', async () => {
  const { run } = await start(() => 'SSH-2.0-OpenSSH_9.9\r\n\r\n');
  expect((await run(LIST)).errors?.[0]?.message).toMatch(/not HTTP\/1\.1/);
});

test.each([
  ['gzip that is none', rawResponse(200, '[]', ['Content-Encoding: gzip'])],
  ['br that is gzip', rawResponse(200, gzipSync('[]'), ['Content-Encoding: br'])],
  ['a coding that petql does not read', rawResponse(200, Buffer.from([0xff]), ['Content-Encoding: compress'])],
])('%s: the error blames the coding', async (_what, response) => {
  const { run } = await start(() => response);
  const message = (await run(LIST)).errors?.[0]?.message ?? '';
  expect(message).toMatch(/coding that its Content-Encoding names/);
  expect(message).not.toMatch(/HTTP\/1\.1/);
});

test('gzip that no header names: the error says so', async () => {
  const { run } = await start(() => rawResponse(200, gzipSync('[]')));
  expect((await run(LIST)).errors?.[0]?.message).toMatch(/expected UTF-8, got gzip, which no Content-Encoding names/);
});

// Half a character is no Unicode, and many readers of JSON reject it.
describe('text that is not well-formed', () => {
  const isWellFormed = (reply: unknown): boolean => !/\\ud[89a-f]/i.test(JSON.stringify(reply));

  test.each([
    ['a message that is cut within an emoji', { message: `${'x'.repeat(999)}😀` }, 'x'.repeat(999)],
    ['a message that is cut after an emoji', { message: `${'x'.repeat(998)}😀y` }, `${'x'.repeat(998)}😀`],
    ['half an emoji in a message', { message: 'half \u{D83D} of it' }, 'half \uFFFD of it'],
  ])('%s', async (_what, error, message) => {
    const { run } = await start(() => rawResponse(400, JSON.stringify({ ...INVALID, ...error })));
    const reply = await run(CREATE);
    expect(reply.data?.['createPet'].userErrors).toEqual([{ message }]);
    expect(isWellFormed(reply)).toBe(true);
  });

  test.each([
    ['a code that is cut within an emoji', `${'x'.repeat(99)}😀`, 'x'.repeat(99)],
    ['half an emoji in a code', '\u{DE00}', '\uFFFD'],
  ])('%s', async (_what, code, shown) => {
    const { run, lines } = await start(() => rawResponse(500, JSON.stringify({ ...INVALID, code })));
    const reply = await run(LIST);
    expect(reply.errors?.[0]?.extensions).toMatchObject({ upstream: { status: 500, code: shown } });
    expect(isWellFormed([reply, lines])).toBe(true);
  });

  test.each(['\u{D83D}', '\u{DE00}\u{D83D}', 'Ada \u{DE00}!'])('half an emoji in a name', async (name) => {
    const pet = JSON.stringify({ ...ADA, name });
    const { run } = await start((request) =>
      isCreate(request) ? rawResponse(201, pet) : rawResponse(200, `[${pet}]`),
    );
    const replies = [await run(LIST), await run(CREATE)];
    expect(replies.flatMap((reply) => reply.errors ?? [])).toEqual([]);
    expect(isWellFormed(replies)).toBe(true);
    expect(JSON.stringify(replies)).toContain('\uFFFD');
  });
});

describe('a second response on a kept connection, while the next call is under way,', () => {
  const list = (name: string) => rawResponse(200, JSON.stringify([{ ...ADA, name }]));
  const created = (name: string) => rawResponse(201, JSON.stringify({ ...ADA, name }));
  const LATE = [list('of A'), rawResponse(401, '{}'), rawResponse(429, '{}', ['Retry-After: 60']), created('of A')];

  test.each(LATE.map((late) => [late.toString().split('\r\n', 1)[0], late] as const))(
    'reaches no other key: %s',
    async (_what, late) => {
      let kept = 0;
      const { server, run } = await start((request) => {
        const { key, numberOnConnection } = request;
        const own = isCreate(request) ? created(`of ${key}`) : list(`of ${key}`);
        if (key === 'A' && numberOnConnection > 1) kept += 1;
        // What A's connection brings once more comes while B waits.
        return key === 'A' && server.requests.length > 4 ? [own, 15, late] : [40, own];
      });
      for (const key of ['A', 'B', 'A', 'B', 'A'])
        expect((await run(LIST, key)).data?.['pets'][0].name).toBe(`of ${key}`);
      // At once after its own list, A might meet what its connection brings once more.
      for (const [key, document] of [
        ['B', CREATE],
        ['B', LIST],
        ['A', LIST],
        ['B', CREATE],
        ['B', LIST],
      ] as const) {
        const { data, errors } = await run(document, key);
        expect([errors, data?.['pets']?.[0].name ?? 'created']).toEqual([
          undefined,
          document === LIST ? `of ${key}` : 'created',
        ]);
      }
      expect(kept).toBeGreaterThan(0);
    },
  );
});
