import fc from 'fast-check';
import { documents, ids, mostly, mutated, nasty } from './documents.ts';

/** An HTTP request before it is on the wire. */
export interface Message {
  readonly method: string;
  readonly path: string;
  /** `KEY` in a value stands for an API key that was not used yet. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

/** One of these texts, which ` | ` separates. */
export const oneOf = (texts: string) => fc.constantFrom(...texts.split(' | '));

/** JSON of any kind, with numbers that JavaScript would write otherwise. */
const json = fc.oneof(
  fc.oneof(ids, nasty).map((text) => JSON.stringify(text)),
  oneOf('"AVAILABLE" | "sold" | true | false | null | 1 | 0 | -1 | 101 | 1.5'),
  oneOf(`9007199254740993 | 9223372036854775808 | 1e400 | -0 | 1.0 | 1E2 | ${'9'.repeat(400)}`),
  fc.json({ maxDepth: 3 }),
);
const rightId = fc.integer({ min: 1, max: 300 }).map((id) => `"${id}"`);

/** An object of some of these members, each mostly right. */
function object(members: Readonly<Record<string, fc.Arbitrary<string>>>, requiredKeys: string[] = []) {
  const values = Object.entries(members).map(([name, right]) => [name, mostly(right, 24, json)] as const);
  return fc.record(Object.fromEntries(values), { requiredKeys }).map((given) => textOf(Object.entries(given)));
}

/** Names may stand twice, and `__proto__` is a name. */
const anyName = oneOf('status | limit | id | ids | input | yes | __proto__ | constructor | v0');
const anyObject = fc.array(fc.tuple(anyName, json), { maxLength: 4 }).map(textOf);

function textOf(members: readonly (readonly [name: string, value: string])[]): string {
  return `{${members.map(([name, value]) => `"${name}":${value}`).join(',')}}`;
}

const input = object(
  {
    name: fc.constant('"Momo"'),
    categoryId: rightId,
    status: oneOf('"SOLD" | null'),
    idempotencyKey: oneOf(`"one" | "two" | " " | "${'k'.repeat(300)}"`),
  },
  ['name', 'categoryId'],
);
const variables = mostly(
  object({
    status: oneOf('"SOLD" | "AVAILABLE"'),
    limit: fc.integer({ min: 1, max: 100 }).map(String),
    id: rightId,
    ids: fc.array(mostly(rightId, 24, json), { maxLength: 8 }).map((all) => `[${all.join(',')}]`),
    input,
    yes: oneOf('true | false'),
  }),
  8,
  anyObject,
  json,
);
const otherMembers = fc.constantFrom(
  '"extensions":{"__proto__":{"a":1},"constructor":{"prototype":1}}',
  '"extensions":{"persistedQuery":{"version":1,"sha256Hash":"__proto__"}}',
  '"extensions":"x"',
  '"documentId":"constructor"',
  '"documentId":{"toString":1}',
  '"__proto__":{"query":"{ pets { id } }"}',
  '"query":"{ __typename }"',
  '"variables":{"limit":1}',
  '"other":null',
);
const params = fc
  .tuple(
    documents.map((text) => `"query":${JSON.stringify(text)}`),
    fc.option(variables.map((text) => `"variables":${text}`)),
    mostly<string | null>(
      fc.constant(null),
      15,
      oneOf('"Main" | "Q0" | "Nobody" | "" | 1 | "__proto__"').map((name) => `"operationName":${name}`),
    ),
    mostly<string | null>(fc.constant(null), 13, otherMembers),
  )
  .map((members) => `{${members.filter((member) => member !== null).join(',')}}`);

const flood = fc
  .tuple(
    oneOf('[ | {"a": | " | 1 |   | {"query":"{pets{id}}","variables":{"ids":['),
    fc.constantFrom(1, 1_000, 300_000),
  )
  .map(([text, length]) => text.repeat(Math.ceil(length / text.length)));
const bodies: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 40, arbitrary: params.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: mutated(params).map((text) => Buffer.from(text)) },
  { weight: 2, arbitrary: fc.array(params, { maxLength: 4 }).map((all) => Buffer.from(`[${all.join(',')}]`)) },
  { weight: 1, arbitrary: params.map((text) => Buffer.from(`\ufeff${text}`, 'utf16le')) },
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

const authorizations: fc.Arbitrary<readonly string[]> = mostly<readonly string[]>(
  fc.constant(['Bearer KEY']),
  30,
  oneOf(' | Bearer | bearer KEY | BEARER   KEY   | Bearer\tKEY | BearerKEY | Basic KEY').map((text) => [text]),
  oneOf('Bearer KEY KEY | Bearer KEY, Bearer KEY | Bearer KEY\u00e9 | Bearer \u00a0KEY').map((text) => [text]),
  oneOf('Bearer KEY\\r\\nX-Injected: 1 | Bearer __proto__').map((text) => [text]),
  fc.constantFrom([], ['Bearer KEY', 'Bearer KEY'], ['Bearer KEY', '']),
  fc.constantFrom(10_000, 490).map((length) => [`Bearer KEY${'x'.repeat(length)}`]),
  headerText.map((text) => [`Bearer KEY${text}`]),
  headerText.map((text) => [text]),
);

/** Headers, and the values that are more than a random text. */
const HEADERS: Readonly<Record<string, string>> = {
  accept:
    '*/* | application/json | application/graphql-response+json | text/html | text/event-stream, application/json | ;;;',
  'cache-control':
    'no-cache | no-store | max-age=0 | max-age=-1 | max-stale | only-if-cached | max-age=99999999999999999999',
  prefer: 'wait=1 | wait=-1 | wait=999999 | wait=x',
  traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01 | 00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`,
  tracestate: 'a=1',
  'content-encoding': 'gzip | br | identity | nobody',
  'access-control-request-method': 'POST | nobody',
  'sec-fetch-site': 'none | cross-site',
  origin: 'null | https://a.example',
  'if-none-match': '* | "x"',
  'x-forwarded-for': '127.0.0.1',
  'x-forwarded-host': 'evil.example',
  'x-http-method-override': 'GET',
  cookie: 'a=b',
};
const otherHeaders = mostly<readonly [string, string]>(
  fc
    .constantFrom(...Object.entries(HEADERS))
    .chain(([name, texts]) => fc.tuple(fc.constant(name), fc.oneof(oneOf(texts), headerText))),
  15,
  // A random text would be a false way to ask for a dry run.
  oneOf('1 | 0 |  | false | 0, 0').map((text) => ['petql-dry-run', text] as const),
);

const PATHS = [
  ...'/ /graphql/ /graphql? //graphql /../graphql /%67raphql /graphql#x /health/live /health/ready /metrics /quota *'.split(
    ' ',
  ),
  '/graphql?query=%7Bpets%7Bid%7D%7D',
  '/graphql?query={__typename}&variables={"__proto__":1}',
  '/graphql?query=%ff%fe&variables=%00',
  '/graphql?query=mutation%7BcreatePet(input:%7Bname:%22a%22,categoryId:%221%22%7D)%7Bpet%7Bid%7D%7D%7D',
  '/graphql?documentId=__proto__',
  '/graphql/../../package.json',
  '/graphql/%2e%2e/%2e%2e/package.json',
  `/graphql?${'x'.repeat(8_000)}`,
];
const CONTENT_TYPES =
  'application/json; charset=utf-8 | application/json;charset=UTF-16 | application/json, text/plain | application/graphql | ' +
  'application/x-www-form-urlencoded | multipart/form-data; boundary=x | text/plain | APPLICATION/JSON | application/jsonp | ';

export const messages: fc.Arbitrary<Message> = fc
  .record({
    method: fc.oneof(
      { weight: 30, arbitrary: fc.constant('POST') },
      { weight: 4, arbitrary: fc.constant('GET') },
      { weight: 1, arbitrary: oneOf('PUT | HEAD | OPTIONS | DELETE | TRACE | QUERY | PROPFIND') },
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
      oneOf(CONTENT_TYPES).map((type) => [type]),
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
