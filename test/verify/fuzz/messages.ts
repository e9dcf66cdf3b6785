import fc from 'fast-check';
import { NEW_PET_FIELDS, VALUES, anyValueOf, documents } from './documents.ts';
import { ENUM_NAMES } from '../../support/pet-api/contract.ts';
import { grammar, mutated, nasty } from './grammar.ts';
import type { Rules } from './grammar.ts';

/** An HTTP request before it is on the wire. */
export interface Message {
  readonly method: string;
  readonly path: string;
  /** `KEY` in a value stands for an API key that was not used yet. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

const MESSAGE: Rules = {
  method: '150* POST | 15* GET | PUT | HEAD | OPTIONS | DELETE | TRACE | QUERY | PROPFIND',
  path: `300* /graphql | 15* /graphql?query=<urlDocument> | / | /graphql/ | /graphql? | //graphql | /../graphql | /%67raphql |
    /graphql#x | /health/live | /health/ready | /metrics | /quota | * | /graphql?documentId=__proto__ |
    /graphql?query=%7Bpets%7Bid%7D%7D | /graphql?query={__typename}&variables={"__proto__":1} |
    /graphql?query=%ff%fe&variables=%00 | /graphql/../../package.json | /graphql/%2e%2e/%2e%2e/package.json |
    /graphql?query=mutation%7BcreatePet(input:%7Bname:%22a%22,categoryId:%221%22%7D)%7Bpet%7Bid%7D%7D%7D |
    /graphql?${'x'.repeat(8_000)}`,
  // Lines of a name and a value.
  headers: '<authorization>\n<contentType>\n<others>',
  authorization: `150* authorization: Bearer KEY | authorization:  | authorization: Bearer | authorization: bearer KEY |
    authorization: BEARER   KEY   | authorization: Bearer\tKEY | authorization: BearerKEY | authorization: Basic KEY |
    authorization: Bearer KEY KEY | authorization: Bearer KEY, Bearer KEY | authorization: Bearer KEY\u00e9 |
    authorization: Bearer \u00a0KEY | authorization: Bearer KEY\\r\\nX-Injected: 1 | authorization: Bearer __proto__ |
    authorization: Bearer KEY\nauthorization: Bearer KEY | authorization: Bearer KEY\nauthorization:  | x: no key | x: no key |
    authorization: Bearer KEY${'x'.repeat(490)} | authorization: Bearer KEY${'x'.repeat(10_000)} |
    authorization: Bearer KEY<text> | authorization: <text>`,
  contentType: '40* content-type: application/json | x: none | <types>',
  types: `content-type: application/json; charset=utf-8 | content-type: application/json;charset=UTF-16 |
    content-type: application/json, text/plain | content-type: application/json\ncontent-type: text/plain |
    content-type: application/graphql | content-type: application/x-www-form-urlencoded | content-type: text/plain |
    content-type: multipart/form-data; boundary=x | content-type: APPLICATION/JSON`,
  others: '4* x: 1 | 4* <other> | <other>\n<others>',
  other: `accept: <accept> | cache-control: <cacheControl> | prefer: wait=<wait> | petql-dry-run: <dryRun> | <name>: <text> |
    traceparent: 00-${'a'.repeat(32)}-${'b'.repeat(16)}-01 | traceparent: 00-${'0'.repeat(32)}-${'b'.repeat(16)}-01 |
    content-encoding: <encoding> | access-control-request-method: POST | sec-fetch-site: none | sec-fetch-site: cross-site |
    if-none-match: * | x-forwarded-for: 127.0.0.1 | x-forwarded-host: evil.example | x-http-method-override: GET`,
  accept:
    '*/* | application/json | application/graphql-response+json | text/html | text/event-stream, application/json | ;;;',
  cacheControl:
    'no-cache | no-store | max-age=0 | max-age=-1 | max-stale | only-if-cached | max-age=99999999999999999999',
  wait: '1 | -1 | 999999 | x',
  // A random text would be a false way to ask for a dry run.
  dryRun: '1 | 0 |  | false | 0, 0',
  encoding: 'gzip | br | identity | nobody',
  name: 'accept | cache-control | prefer | traceparent | tracestate | origin | cookie | if-none-match | x-request-id',
};

const NEW_PET = NEW_PET_FIELDS.map(([name, value]) => `"${name}":${value}`).join(',');
const ENUMS = ENUM_NAMES.map((name) => `2* "${name}":"${anyValueOf(name)}"`);

/** Members of the JSON body beside the query. Names may stand twice, and `__proto__` is one. */
const MEMBERS: Rules = {
  members:
    '9* <none> | 9* ,"variables":<variables> | ,"operationName":<operation> | <extra> | ,"variables":<variables><extra>',
  none: '',
  variables: '20* {"yes":<boolean><vars>} | {"__proto__":<json>} | {"constructor":<json>,"id":<json>} | <json>',
  vars: '<none> | 4* ,<var><vars>',
  var: `4* "limit":<int> | 4* "id":<id> | 2* "ids":[<id>,<id>] | ${ENUMS.join(' | ')} | 2* "input":<input> | "v0":1 | "<key>":<json>`,
  key: `limit | id | ids | ${ENUM_NAMES.join(' | ')} | input | yes`,
  input: `{${NEW_PET}} | {${NEW_PET},"idempotencyKey":<idempotencyKey>} | {"name":<json>}`,
  operation: '4* "Main" | "q0" | "Nobody" | "" | 1 | "__proto__"',
  extra: `,"extensions":{"__proto__":{"a":1},"constructor":{"prototype":1}} | ,"extensions":"x" | ,"other":null |
    ,"extensions":{"persistedQuery":{"version":1,"sha256Hash":"__proto__"}} | ,"documentId":"constructor" |
    ,"documentId":{"toString":1} | ,"__proto__":{"query":"{ pets { id } }"} | ,"query":"{ __typename }"`,
  json: `<wrong> | <oddId> | 9007199254740993 | 1e400 | -0 | 1.0 | 1E2 | ${'9'.repeat(400)} | [<json>] | {"a":<json>}`,
};

/** What a header may hold on the wire: no line ends and no NUL, which the raw bytes have. */
const headerText = fc
  .uint8Array({ min: 0x20, maxLength: 12 })
  .map((bytes) => Buffer.from(bytes).toString('latin1').replaceAll('\u007f', ''));

const texts = grammar(MESSAGE, {
  text: headerText,
  urlDocument: documents.map((text) => encodeURIComponent(text.toWellFormed()).slice(0, 8_000)),
});
const { members } = grammar({ ...VALUES, ...MEMBERS }, { nasty: nasty.map((text) => JSON.stringify(text)) });
const params = fc
  .tuple(documents, members as fc.Arbitrary<string>)
  .map(([query, more]) => `{"query":${JSON.stringify(query)}${more}}`);
const flood = fc
  .tuple(fc.constantFrom('[', '{"a":', '"', '1', ' ', '{"variables":{"ids":['), fc.constantFrom(1, 1_000, 300_000))
  .map(([text, length]) => text.repeat(Math.ceil(length / text.length)));
const bodies: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 40, arbitrary: params.map((text) => Buffer.from(text)) },
  { weight: 3, arbitrary: mutated(params).map((text) => Buffer.from(text)) },
  { weight: 2, arbitrary: fc.array(params, { maxLength: 4 }).map((all) => Buffer.from(`[${all.join(',')}]`)) },
  { weight: 1, arbitrary: params.map((text) => Buffer.from(`\ufeff${text}`, 'utf16le')) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: flood.map((text) => Buffer.from(text)) },
);

const part = (name: string) => texts[name] as fc.Arbitrary<string>;

export const messages: fc.Arbitrary<Message> = fc
  .record({ method: part('method'), path: part('path'), lines: part('headers'), body: bodies })
  .map(({ method, path, lines, body }) => ({
    method,
    path,
    headers: `host: petql.example\n${lines}`.split('\n').map((line) => {
      const [name = '', ...value] = line.split(': ');
      return [name, value.join(': ')] as const;
    }),
    body: method === 'GET' || method === 'HEAD' ? Buffer.alloc(0) : body,
  }));
