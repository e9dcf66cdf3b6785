import fc from 'fast-check';
import { documents, ids, mostly, mutated, nasty } from './documents.ts';

/** An HTTP request before it is on the wire. */
export interface Message {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn; `KEY` in a value stands for an API key that was not used yet. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

/** Stands in JSON for numbers that JavaScript writes otherwise. */
const RAW = /"@@([^"]*)@@"/g;

const value: fc.Arbitrary<unknown> = fc.oneof(
  ids,
  fc.constantFrom('AVAILABLE', 'sold', true, false, null, 1, 0, -1, 101, 1.5),
  fc
    .constantFrom('9007199254740993', '9223372036854775808', '1e400', '-0', '1.0', '1E2', '9'.repeat(400))
    .map((digits) => `@@${digits}@@`),
  nasty,
  fc.jsonValue({ maxDepth: 3 }),
);
const rightId = fc.integer({ min: 1, max: 300 }).map(String);
const NAMES = ['status', 'limit', 'id', 'ids', 'input', 'yes', '__proto__', 'constructor', 'v0'];

/** Mostly right, or any value. */
const rather = (right: fc.Arbitrary<unknown>, ...others: fc.Arbitrary<unknown>[]) =>
  mostly(right, 24, value, ...others);

const input = fc.record(
  {
    name: rather(fc.constant('Momo'), nasty),
    categoryId: rather(rightId, ids),
    status: rather(fc.constantFrom('SOLD', null)),
    idempotencyKey: fc.oneof(fc.constantFrom('one', 'two', ' ', 'k'.repeat(300)), nasty),
    ['__proto__']: value,
  },
  { requiredKeys: ['name', 'categoryId'], noNullPrototype: true },
);
const rightVariables = fc.record(
  {
    status: rather(fc.constantFrom('SOLD', 'AVAILABLE')),
    limit: rather(fc.integer({ min: 1, max: 100 })),
    id: rather(rightId, ids),
    ids: rather(fc.array(rightId, { maxLength: 8 }), fc.array(fc.oneof(ids, value), { maxLength: 8 })),
    input: rather(input),
    yes: rather(fc.boolean()),
  },
  { requiredKeys: [], noNullPrototype: true },
);
/** JSON text, in which names may stand twice, and `__proto__` is a name. */
const entries = fc
  .array(fc.tuple(fc.constantFrom(...NAMES), value), { maxLength: 4 })
  .map((all) => `{${all.map(([name, one]) => `${JSON.stringify(name)}:${JSON.stringify(one)}`).join(',')}}`);
const variables = mostly(
  rightVariables.map((given) => JSON.stringify(given)),
  8,
  entries,
  value.map((given) => JSON.stringify(given) ?? 'null'),
).map((text) => text.replaceAll(RAW, '$1'));

const OTHER_PARAMS = [
  '"extensions":{"__proto__":{"a":1},"constructor":{"prototype":1}}',
  '"extensions":{"persistedQuery":{"version":1,"sha256Hash":"__proto__"}}',
  '"extensions":"x"',
  '"documentId":"constructor"',
  '"documentId":{"toString":1}',
  '"__proto__":{"query":"{ pets { id } }"}',
  '"query":"{ __typename }"',
  '"variables":{"limit":1}',
  '"other":null',
];
const params = fc
  .tuple(
    documents.map((text) => `"query":${JSON.stringify(text)}`),
    fc.option(variables.map((text) => `"variables":${text}`)),
    mostly<string | null>(
      fc.constant(null),
      15,
      fc
        .constantFrom('Main', 'Q0', 'Nobody', '', 1, '__proto__')
        .map((name) => `"operationName":${JSON.stringify(name)}`),
    ),
    mostly<string | null>(fc.constant(null), 13, fc.constantFrom(...OTHER_PARAMS)),
  )
  .map((parts) => `{${parts.filter((part) => part !== null).join(',')}}`);

const flood = fc
  .tuple(
    fc.constantFrom('[', '{"a":', '"', '1', ' ', '{"query":"{pets{id}}","variables":{"ids":['),
    fc.constantFrom(1, 1_000, 300_000),
  )
  .map(([text, length]) => text.repeat(Math.ceil(length / text.length)));
const bodies: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 40, arbitrary: params.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: mutated(params).map((text) => Buffer.from(text)) },
  { weight: 2, arbitrary: fc.array(params, { maxLength: 4 }).map((all) => Buffer.from(`[${all.join(',')}]`)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(params, fc.constantFrom('utf16le', 'latin1'))
      .map(([text, encoding]) => Buffer.from(`\ufeff${text}`, encoding)),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: flood.map((text) => Buffer.from(text)) },
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
    weight: 2,
    arbitrary: fc.constantFrom(
      [],
      [''],
      ['Bearer'],
      ['bearer KEY'],
      ['BEARER   KEY  '],
      ['Bearer\tKEY'],
      ['BearerKEY'],
      ['Basic KEY'],
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ['Bearer KEY KEY'],
      ['Bearer KEY, Bearer KEY'],
      ['Bearer KEY', 'Bearer KEY'],
      ['Bearer KEY', ''],
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ['Bearer KEY\u00e9'],
      ['Bearer \u00a0KEY'],
      ['Bearer KEY\\r\\nX-Injected: 1'],
      ['Bearer __proto__'],
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom(10_000, 490).map((length) => [`Bearer KEY${'x'.repeat(length)}`]) },
  { weight: 2, arbitrary: headerText.map((text) => [`Bearer KEY${text}`]) },
  { weight: 1, arbitrary: headerText.map((text) => [text]) },
);

/** Headers, and the values that are more than a random text. */
const HEADERS: Readonly<Record<string, readonly string[]>> = {
  accept: [
    '*/*',
    'application/json',
    'application/graphql-response+json',
    'text/html',
    'text/event-stream, application/json',
    '',
    ';;;',
  ],
  'cache-control': [
    'no-cache',
    'no-store',
    'max-age=0',
    'max-age=-1',
    'max-stale',
    'only-if-cached',
    'max-age=99999999999999999999',
  ],
  prefer: ['wait=1', 'wait=-1', 'wait=999999', 'wait=x'],
  'petql-dry-run': ['1', '0', '', 'false', '0, 0'],
  traceparent: [`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`],
  'x-forwarded-for': ['127.0.0.1'],
  'x-forwarded-host': ['evil.example'],
  'content-encoding': ['gzip', 'br', 'identity', 'nobody'],
  'access-control-request-method': ['POST', 'nobody'],
  'sec-fetch-site': ['none', 'cross-site'],
  origin: [],
  'if-none-match': ['*', '"x"'],
  tracestate: [],
  cookie: [],
  'x-request-id': [],
  'x-http-method-override': ['GET'],
};
/** Of these no text but the ones above is sent: a random one would be a false way to ask for a dry run. */
const FIXED = new Set(['petql-dry-run']);
const otherHeaders = fc.constantFrom(...Object.entries(HEADERS)).chain(([name, values]) => {
  const texts = values.length > 0 ? [fc.constantFrom(...values)] : [];
  return fc.tuple(fc.constant(name), fc.oneof(...texts, ...(FIXED.has(name) ? [] : [headerText])));
});

const PATHS = [
  '/',
  '/graphql/',
  '/graphql?',
  '/graphql?query=%7Bpets%7Bid%7D%7D',
  '/graphql?query={__typename}&variables={"__proto__":1}',
  '/graphql?query=%ff%fe&variables=%00',
  '/graphql?query=mutation%7BcreatePet(input:%7Bname:%22a%22,categoryId:%221%22%7D)%7Bpet%7Bid%7D%7D%7D',
  '/graphql?documentId=__proto__',
  '//graphql',
  '/../graphql',
  '/%67raphql',
  '/graphql#x',
  '/health/live',
  '/health/ready',
  '/metrics',
  '/quota',
  '/graphql/../../package.json',
  '/graphql/%2e%2e/%2e%2e/package.json',
  '*',
  `/graphql?${'x'.repeat(8_000)}`,
];
const CONTENT_TYPES = [
  'application/json; charset=utf-8',
  'application/json;charset=UTF-16',
  'application/json, text/plain',
  'application/graphql',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'APPLICATION/JSON',
  'application/jsonp',
  '',
];

export const messages: fc.Arbitrary<Message> = fc
  .record({
    method: fc.oneof(
      { weight: 30, arbitrary: fc.constant('POST') },
      { weight: 4, arbitrary: fc.constant('GET') },
      { weight: 1, arbitrary: fc.constantFrom('PUT', 'HEAD', 'OPTIONS', 'DELETE', 'TRACE', 'QUERY', 'PROPFIND') },
    ),
    path: mostly(
      fc.constant('/graphql'),
      15,
      fc.constantFrom(...PATHS),
      documents.map((text) => `/graphql?query=${encodeURIComponent(text.toWellFormed()).slice(0, 8_000)}`),
    ),
    authorization: authorizations,
    contentType: mostly<readonly string[]>(
      fc.constant(['application/json']),
      30,
      fc.constantFrom(...CONTENT_TYPES).map((type) => [type]),
      fc.constantFrom([], ['application/json', 'text/plain']),
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
