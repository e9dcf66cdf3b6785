import fc from 'fast-check';
import { documents, ids, mutated, nasty } from './documents.ts';

/** An HTTP request before it is on the wire. */
export interface Message {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn; `KEY` in a value stands for an API key that nobody has used yet. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

/** Stands in JSON for what no JavaScript value is written as. */
const RAW = /"@@([^"]*)@@"/g;

const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: ids },
  { weight: 2, arbitrary: fc.constantFrom('AVAILABLE', 'SOLD', 'sold', true, false, null, 1, 3, 0, -1, 101, 1.5) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(
        '9007199254740993',
        '9223372036854775807',
        '9223372036854775808',
        '-9223372036854775809',
        '1e400',
        '-0',
        '1.0',
        '1E2',
        '9'.repeat(400),
      )
      .map((digits) => `@@${digits}@@`),
  },
  { weight: 1, arbitrary: nasty },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
);

const rightId = fc.integer({ min: 1, max: 300 }).map(String);

const NAMES = ['status', 'limit', 'id', 'ids', 'input', 'yes', 'no', '__proto__', 'constructor', 'prototype', 'v0'];

const input = fc.record(
  {
    name: fc.oneof({ weight: 8, arbitrary: fc.constant('Momo') }, nasty, value),
    categoryId: fc.oneof({ weight: 8, arbitrary: rightId }, ids, value),
    status: fc.oneof({ weight: 8, arbitrary: fc.constantFrom('SOLD', null) }, value),
    idempotencyKey: fc.oneof(fc.constantFrom('one', 'two', ' ', 'k'.repeat(300)), nasty),
    ['__proto__']: value,
  },
  { requiredKeys: ['name', 'categoryId'], noNullPrototype: true },
);

const variables = fc.oneof(
  { weight: 8, arbitrary: fc.constant(undefined) },
  {
    weight: 16,
    arbitrary: fc.record(
      {
        status: fc.oneof({ weight: 24, arbitrary: fc.constantFrom('SOLD', 'AVAILABLE') }, value),
        limit: fc.oneof({ weight: 24, arbitrary: fc.integer({ min: 1, max: 100 }) }, value),
        id: fc.oneof({ weight: 24, arbitrary: rightId }, ids, value),
        ids: fc.oneof(
          { weight: 24, arbitrary: fc.array(rightId, { maxLength: 8 }) },
          fc.array(fc.oneof(ids, value), { maxLength: 8 }),
          value,
        ),
        input: fc.oneof({ weight: 24, arbitrary: input }, value),
        yes: fc.oneof({ weight: 24, arbitrary: fc.boolean() }, value),
        no: fc.oneof({ weight: 24, arbitrary: fc.boolean() }, value),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
  },
  // Entries rather than an object, which would take `__proto__` for something else.
  { weight: 2, arbitrary: fc.array(fc.tuple(fc.constantFrom(...NAMES), value), { maxLength: 4 }).map(jsonOfEntries) },
  { weight: 1, arbitrary: value },
);

/** JSON text, in which names may stand twice. */
function jsonOfEntries(entries: readonly (readonly [string, unknown])[]): string {
  return `@@@{${entries.map(([name, one]) => `${JSON.stringify(name)}:${JSON.stringify(one)}`).join(',')}}`;
}

function json(one: unknown): string {
  const text = typeof one === 'string' && one.startsWith('@@@') ? one.slice(3) : (JSON.stringify(one) ?? 'null');
  return text.replaceAll(RAW, '$1');
}

const params = fc
  .record({
    query: documents,
    given: variables,
    operationName: fc.oneof(
      { weight: 30, arbitrary: fc.constant(undefined) },
      { weight: 2, arbitrary: fc.constantFrom('Main', 'Q0', 'Nobody', '', null, 1, '__proto__') },
    ),
    extra: fc.oneof(
      { weight: 40, arbitrary: fc.constant('') },
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          ',"extensions":{}',
          ',"extensions":{"__proto__":{"a":1},"constructor":{"prototype":1}}',
          ',"extensions":{"persistedQuery":{"version":1,"sha256Hash":"__proto__"}}',
          ',"extensions":{"persistedQuery":null}',
          ',"extensions":"x"',
          ',"documentId":"constructor"',
          ',"documentId":{"toString":1}',
          ',"__proto__":{"query":"{ pets { id } }"}',
          ',"query":"{ __typename }"',
          ',"variables":{"limit":1}',
          ',"other":null',
        ),
      },
    ),
  })
  .map(({ query, given, operationName, extra }) => {
    const parts = [`"query":${JSON.stringify(query)}`];
    if (given !== undefined) parts.push(`"variables":${json(given)}`);
    if (operationName !== undefined) parts.push(`"operationName":${JSON.stringify(operationName)}`);
    return `{${parts.join(',')}${extra}}`;
  });

/** What stands in a list of operations: not always one. */
const listed = fc.oneof(
  { weight: 4, arbitrary: params },
  { weight: 1, arbitrary: fc.constant('null') },
  { weight: 1, arbitrary: fc.constantFrom('5', '"x"', 'true', '[]', '[null]', '{}') },
  { weight: 1, arbitrary: params.map((text) => `[${text}]`) },
);

const bodies: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 40, arbitrary: params.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: mutated(params).map((text) => Buffer.from(text)) },
  { weight: 2, arbitrary: fc.array(listed, { maxLength: 4 }).map((all) => Buffer.from(`[${all.join(',')}]`)) },
  { weight: 1, arbitrary: params.map((text) => Buffer.from(`\ufeff${text}`)) },
  { weight: 1, arbitrary: params.map((text) => Buffer.from(text, 'utf16le')) },
  { weight: 1, arbitrary: params.map((text) => Buffer.from(text, 'latin1')) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom('[', '{"a":', '"', '1', ' ', '\n', '{"query":"{pets{id}}","variables":{"ids":['),
        fc.constantFrom(1, 1_000, 300_000),
      )
      .map(([text, times]) => Buffer.from(text.repeat(Math.ceil(times / text.length)))),
  },
);

/** What a header may hold on the wire: no line ends and no NUL, which the raw bytes have. */
const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCodePoint(code)),
  maxLength: 12,
});

const authorizations: fc.Arbitrary<readonly string[]> = fc.oneof(
  { weight: 30, arbitrary: fc.constant(['Bearer KEY']) },
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      [],
      [''],
      ['Bearer'],
      ['Bearer '],
      ['bearer KEY'],
      ['BEARER   KEY  '],
      ['Bearer\tKEY'],
      ['Bearer KEY KEY'],
      ['Bearer KEY, Bearer KEY'],
      ['Bearer KEY', 'Bearer KEY'],
      ['Bearer KEY', ''],
      ['BearerKEY'],
      ['Basic KEY'],
      ['Bearer KEY\u00e9'],
      ['Bearer KEY\u00ad'],
      ['Bearer \u00a0KEY'],
      ['Bearer KEY\u007e'],
      ['Bearer KEY%0d%0aX-Injected:%201'],
      ['Bearer KEY\\r\\nX-Injected: 1'],
      [`Bearer KEY${'x'.repeat(10_000)}`],
      [`Bearer KEY${'x'.repeat(490)}`],
      ['Bearer __proto__'],
      ['Bearer KEY,'],
      ['Digest username="KEY"'],
    ),
  },
  { weight: 2, arbitrary: headerText.map((text) => [`Bearer KEY${text}`]) },
  { weight: 1, arbitrary: headerText.map((text) => [text]) },
);

const accepts = fc.constantFrom(
  '*/*',
  'application/json',
  'application/graphql-response+json',
  'application/graphql-response+json, application/json;q=0.9',
  'text/html',
  'text/event-stream, application/json',
  'multipart/mixed',
  '',
  'application/json;q=0',
  'APPLICATION/JSON',
  ';;;',
);
const contentTypes = fc.constantFrom(
  'application/json; charset=utf-8',
  'application/json;charset=UTF-16',
  'application/json\t; charset=utf-8',
  'application/json, text/plain',
  'application/graphql+json',
  'application/graphql',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'APPLICATION/JSON',
  'application/jsonp',
  '',
);
const otherHeaders = fc.oneof(
  fc.tuple(
    fc.constant('cache-control'),
    fc.oneof(
      fc.constantFrom(
        'no-cache',
        'no-store',
        'max-age=0',
        'max-age=-1',
        'max-age=1e9',
        'max-stale',
        'only-if-cached',
        'max-age="5"',
        'max-age=99999999999999999999',
      ),
      headerText,
    ),
  ),
  fc.tuple(fc.constant('prefer'), fc.oneof(fc.constantFrom('wait=1', 'wait=-1', 'wait=999999', 'wait=x'), headerText)),
  fc.tuple(fc.constant('petql-dry-run'), fc.constantFrom('1', '0', '', 'false', '0, 0', '\u00e9')),
  fc.tuple(
    fc.constant('traceparent'),
    fc.oneof(
      fc.constant(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`),
      fc.constant(`00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`),
      headerText,
    ),
  ),
  fc.tuple(
    fc.constantFrom('tracestate', 'origin', 'cookie', 'referer', 'x-request-id', 'x-http-method-override'),
    headerText,
  ),
  fc.tuple(
    fc.constantFrom('x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'forwarded', 'x-real-ip'),
    fc.constantFrom('127.0.0.1', 'evil.example', 'for=unknown'),
  ),
  fc.tuple(fc.constant('content-encoding'), fc.constantFrom('gzip', 'br', 'deflate', 'identity', 'nobody')),
  fc.tuple(fc.constant('access-control-request-method'), fc.constantFrom('POST', 'nobody')),
  fc.tuple(
    fc.constantFrom('sec-fetch-site', 'apollo-require-preflight', 'x-requested-with'),
    fc.constantFrom('none', 'cross-site', 'true'),
  ),
  fc.tuple(fc.constant('accept'), accepts),
  fc.tuple(fc.constant('if-none-match'), fc.constantFrom('*', '"x"')),
  fc.tuple(fc.constant('range'), fc.constant('bytes=0-1')),
);

const paths = fc.oneof(
  { weight: 30, arbitrary: fc.constant('/graphql') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '/',
      '/graphql/',
      '/graphql?',
      '/graphql?query=%7Bpets%7Bid%7D%7D',
      '/graphql?query={__typename}&variables={"__proto__":1}',
      '/graphql?query=%ff%fe&variables=%00',
      '/graphql?query=%7Bpets%7Bid%7D%7D&variables=[&extensions=x',
      '/graphql?query=mutation%7BcreatePet(input:%7Bname:%22a%22,categoryId:%221%22%7D)%7Bpet%7Bid%7D%7D%7D',
      '/graphql?documentId=__proto__',
      '//graphql',
      '/../graphql',
      '/%67raphql',
      '/graphql#x',
      '/health/live',
      '/health/ready',
      '/health',
      '/metrics',
      '/budget',
      '/graphql/graphiql.js',
      '/graphql/../../package.json',
      '/graphql/%2e%2e/%2e%2e/package.json',
      '*',
      `/graphql?${'x'.repeat(8_000)}`,
    ),
  },
  {
    weight: 1,
    arbitrary: documents.map((text) => `/graphql?query=${encodeURIComponent(text.toWellFormed()).slice(0, 8_000)}`),
  },
);

const methods = fc.oneof(
  { weight: 30, arbitrary: fc.constant('POST') },
  { weight: 4, arbitrary: fc.constant('GET') },
  { weight: 1, arbitrary: fc.constantFrom('PUT', 'HEAD', 'OPTIONS', 'DELETE', 'PATCH', 'TRACE', 'QUERY', 'PROPFIND') },
);

export const messages: fc.Arbitrary<Message> = fc
  .record({
    method: methods,
    path: paths,
    authorization: authorizations,
    contentType: fc.oneof(
      { weight: 30, arbitrary: fc.constant<readonly string[]>(['application/json']) },
      { weight: 2, arbitrary: contentTypes.map((type): readonly string[] => [type]) },
      { weight: 1, arbitrary: fc.constantFrom<readonly string[]>([], ['application/json', 'text/plain']) },
    ),
    others: fc.array(otherHeaders, { maxLength: 3 }),
    body: bodies,
  })
  .map(({ method, path, authorization, contentType, others, body }) => ({
    method,
    path,
    headers: [
      ['host', 'petql.example'] as const,
      ...authorization.map((text) => ['authorization', text] as const),
      ...contentType.map((type) => ['content-type', type] as const),
      ...others,
    ],
    body: method === 'GET' || method === 'HEAD' ? Buffer.alloc(0) : body,
  }));

/** Requests as bytes, one after the other or cut off, with lengths that are true or not, and mistakes in between. */
export const wireBytes: fc.Arbitrary<Buffer> = fc
  .record({
    all: fc.array(messages, { minLength: 1, maxLength: 3 }),
    framing: fc.constantFrom(
      'true',
      'true',
      'true',
      'true',
      'true',
      'true',
      'true',
      'true',
      'short',
      'long',
      'both',
      'twice',
      'negative',
      'chunked',
      'bad chunks',
      'none',
    ),
    edits: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      {
        weight: 1,
        arbitrary: fc.array(
          fc.record({
            at: fc.nat(400),
            gone: fc.constantFrom(0, 1, 3),
            come: fc.oneof(
              fc.constantFrom(
                '\r\n',
                '\n',
                '\r',
                '\0',
                ':',
                ' ',
                '\r\nX-Injected: 1',
                '\r\n\r\n',
                'HTTP/1.0',
                '\u00ff',
                'Transfer-Encoding: chunked\r\n',
                'Content-Length: 5\r\n',
                'Expect: 100-continue\r\n',
                'Upgrade: h2c\r\nConnection: Upgrade\r\n',
              ),
              fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
            ),
          }),
          { maxLength: 3 },
        ),
      },
    ),
    cut: fc.oneof({ weight: 24, arbitrary: fc.constant(Infinity) }, { weight: 1, arbitrary: fc.nat(600) }),
  })
  .map(({ all, framing, edits, cut }) => {
    let bytes = Buffer.concat(all.map((message) => onTheWire(message, framing)));
    for (const { at, gone, come } of edits) {
      const place = at % (bytes.length + 1);
      bytes = Buffer.concat([bytes.subarray(0, place), Buffer.from(come, 'latin1'), bytes.subarray(place + gone)]);
    }
    return bytes.subarray(0, cut);
  });

function onTheWire({ method, path, headers, body }: Message, framing: string): Buffer {
  const lines = [`${method} ${path} HTTP/1.1`, ...headers.map(([name, text]) => `${name}: ${text}`)];
  const length = (count: number) => lines.push(`Content-Length: ${count}`);
  let sent = body;
  if (framing === 'true' || framing === 'both') length(body.length);
  if (framing === 'short') length(Math.floor(body.length / 2));
  if (framing === 'long') length(body.length + 10);
  if (framing === 'negative') length(-1);
  if (framing === 'twice') lines.push(`Content-Length: ${body.length}`, `Content-Length: ${body.length + 1}`);
  if (framing === 'both' || framing.endsWith('chunks') || framing === 'chunked') {
    lines.push('Transfer-Encoding: chunked');
    const size = framing === 'bad chunks' ? 'zz' : body.length.toString(16);
    sent = Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);
  }
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), sent]);
}
