import { gzipSync } from 'node:zlib';
import { getIntrospectionQuery } from 'graphql';
import type { WireRequest } from '../support/wire.ts';

/** What a client sends, by a public report about another server, and the right response. */
export interface Report {
  /** Where it was met: `owner/repository#number`. */
  readonly report: string;
  readonly sends: string;
  readonly request: WireRequest;
  /** The status, and what the response has beside it. */
  readonly response: readonly [status: number, ...parts: RegExp[]];
}

const QUERY = '{ __typename }';
const RUNS = /"data":\{"__typename":"Query"\}/;
const json = (params: object) => JSON.stringify(params);
const body = json({ query: QUERY });
const BY_ID =
  'query ($id: ID!, $n: Int, $s: String! = \\"Pet\\") { pet(id: $id) { id } pets(limit: $n) { id } __type(name: $s) { name } }';

/** A file of an app's manifest has this document alone. */
export const MANIFEST = { 'app-1': '{ pets { id } }' };
/** Of pages and apps. */
export const CORS_ORIGINS = [
  'capacitor://localhost',
  'tauri://localhost',
  'chrome-extension://abcdefgh',
  'electron://graphiql-app',
  'http://LOCALHOST:5173',
];

const preflight = (origin: string): WireRequest => ({
  method: 'OPTIONS',
  headers: [
    `Origin: ${origin}`,
    'Access-Control-Request-Method: POST',
    'Access-Control-Request-Headers: authorization,content-type',
  ],
});

const EMPTY_TEXTS: readonly Report[] = [
  {
    report: 'graphql-python/gql#92',
    sends: 'an empty operationName by POST',
    request: { body: json({ query: QUERY, operationName: '' }) },
    response: [200, RUNS],
  },
  {
    report: 'apollographql/router#4837',
    sends: 'null for each optional member, and an empty operationName',
    request: { body: json({ query: QUERY, operationName: '', variables: null, extensions: null, documentId: null }) },
    response: [200, RUNS],
  },
  {
    report: 'nautilus/graphql#10',
    sends: 'empty members by GET',
    request: { method: 'GET', target: '/graphql?query={__typename}&operationName=&variables=&extensions=&documentId=' },
    response: [200, RUNS],
  },
  {
    report: 'graphql/express-graphql#233',
    sends: 'an empty text for each optional member by POST',
    request: { body: json({ query: QUERY, operationName: '', variables: '', extensions: '', documentId: '' }) },
    response: [200, RUNS],
  },
  {
    report: 'graphql/express-graphql#233, another text',
    sends: 'variables that are a text',
    request: { body: json({ query: QUERY, variables: ' ' }) },
    response: [400, /variables must be an object/],
  },
  {
    report: 'graphql/express-graphql#768',
    sends: 'an empty name where the document has several operations',
    request: { body: json({ query: 'query A { __typename } query B { __typename }', operationName: '' }) },
    response: [200, /operationName must name an operation/],
  },
  {
    report: 'graphql/graphql-over-http#216',
    sends: 'an empty query beside the id of a document',
    request: { body: json({ query: '', documentId: 'app-1' }), headers: ['Authorization: Bearer demo-free'] },
    response: [200, /"data":\{"pets":\[/],
  },
  {
    report: 'graphql/graphql-over-http#216, the other way around',
    sends: 'an empty documentId beside a query',
    request: { body: json({ query: QUERY, documentId: '' }) },
    response: [200, RUNS],
  },
];

const VARIABLES: readonly Report[] = [
  {
    report: 'graphql/graphiql#981',
    sends: 'numbers in variables that the operation does not declare',
    request: {
      body: `{"query":"${QUERY}","variables":{"now":1733529600000000000,"a":{"b":{"c":1e300}},"list":[1e16]}}`,
    },
    response: [200, RUNS],
  },
  {
    report: 'graphql/graphql-spec#540',
    sends: 'such a number by GET',
    request: { method: 'GET', target: '/graphql?query={__typename}&variables={%22now%22:1e16}' },
    response: [200, RUNS],
  },
  {
    report: 'graphql-java/graphql-java#1139, an id',
    sends: 'a number beyond 2^53 as an id',
    request: { body: `{"query":"${BY_ID}","variables":{"id":9007199254740993}}` },
    response: [200, /Variable \\"\$id\\" is a number that JSON clients cannot hold exactly/],
  },
  {
    report: 'graphql-java/graphql-java#1139, an Int',
    sends: 'a number beyond 2^53 as an Int, of which GraphQL itself says what is wrong',
    request: { body: `{"query":"${BY_ID}","variables":{"id":"1","n":9007199254740993}}` },
    response: [200, /Int cannot represent non 32-bit signed integer/],
  },
  {
    report: 'graphql-java/graphql-java#1139, a text',
    sends: 'a number beyond 2^53 as a String, which is not called an id',
    request: { body: `{"query":"${BY_ID}","variables":{"id":"1","s":1e300}}` },
    response: [200, /String cannot represent a non string value/],
  },
];

const ADDRESSES: readonly Report[] = [
  {
    report: 'broadinstitute/gnomad-browser#536',
    sends: 'a POST to the root',
    request: { target: '/', body },
    response: [404, /GraphQL is at \/graphql\./],
  },
  ...['PUT', 'DELETE', 'OPTIONS', 'GET', 'HEAD'].map((method): Report => ({
    report: `besu-eth/besu#283, ${method}`,
    sends: `${method} to the root, from what shows no HTML`,
    request: { method, target: '/', headers: ['Accept: application/json'] },
    response: [404],
  })),
  {
    report: 'saleor/saleor#5184',
    sends: 'a GET of the root from a browser',
    request: { method: 'GET', target: '/', headers: ['Accept: text/html,application/xhtml+xml,*/*;q=0.8'] },
    response: [302, /^location: graphql\?graphiql\r$/im],
  },
  {
    report: 'saleor/saleor#5184, health',
    sends: 'a POST to the health check',
    request: { target: '/health/live', body },
    response: [405, /^allow: GET, HEAD\r$/im],
  },
  {
    report: 'graphql-community/koa-graphql#69',
    sends: 'HEAD of a query',
    request: { method: 'HEAD', target: '/graphql?query={__typename}' },
    response: [200, /^content-length: [1-9]/im, /\r\n\r\n$/],
  },
  {
    report: 'graphql-community/koa-graphql#69, a mutation',
    sends: 'HEAD of a mutation',
    request: { method: 'HEAD', target: '/graphql?query=mutation{__typename}' },
    response: [405, /^allow: POST\r$/im],
  },
];

const ORIGINS: readonly Report[] = [
  ['ionic-team/ionic-docs#415', 'capacitor://localhost'],
  ['tauri-apps/tauri#2327', 'tauri://localhost'],
  ['pydantic/logfire-js#89', 'chrome-extension://abcdefgh'],
  ['skevy/graphiql-app#66', 'electron://graphiql-app'],
  ['hasura/graphql-engine#6345', 'http://localhost:5173'],
].map(([report = '', origin = '']) => ({
  report,
  sends: `a preflight from ${origin}`,
  request: preflight(origin),
  response: [204, new RegExp(`^access-control-allow-origin: ${origin}\\r$`, 'im')],
}));

const ACCEPTED: readonly Report[] = [
  ['akka/akka-http#1139', 'application/json; charset=utf8'],
  ['akka/akka-http#1217', 'application/json; charset=ISO-8859-1'],
  ['Refinitiv/bottle-oauthlib#11', "application/json; charset='utf-8'"],
  ['line/armeria#4451', 'application/graphql+json'],
  ['HttpURLConnection of Java', 'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2'],
].map(([report = '', accept = '']) => ({
  report,
  sends: `Accept: ${accept}`,
  request: { body, headers: [`Accept: ${accept}`] },
  response: [200, RUNS, /^content-type: application\/json; charset=utf-8\r$/im],
}));

const BODIES: readonly Report[] = [
  ...[
    ['crnk-project/crnk-framework#33', 'ISO-8859-1'],
    ['expressjs/body-parser#287', 'x-windows-949'],
    ['expressjs/body-parser#192', 'gbk'],
  ].map(([report = '', charset = '']) => ({
    report,
    sends: `ASCII, and calls it ${charset}`,
    request: { body, headers: [`Content-Type: application/json; charset=${charset}`] },
    response: [200, RUNS] as const,
  })),
  {
    report: 'crnk-project/crnk-framework#33, other letters',
    sends: 'bytes that are not UTF-8, and says so',
    request: {
      body: Buffer.from(json({ query: QUERY, variables: { name: 'Zoë' } }), 'latin1'),
      headers: ['Content-Type: application/json; charset=ISO-8859-1'],
    },
    response: [400, /Expected a body in UTF-8/],
  },
  {
    report: 'expressjs/body-parser#117',
    sends: 'UTF-16, and says so',
    request: { body: Buffer.from(body, 'utf16le'), headers: ['Content-Type: application/json; charset=utf-16'] },
    response: [400, /not valid JSON/],
  },
  {
    report: 'apollographql/apollo-link-rest#185',
    sends: 'its content type twice',
    request: { body, headers: ['Content-Type: application/json', 'content-type: application/json'] },
    response: [200, RUNS],
  },
  {
    report: 'apollographql/apollo-link-rest#185, in one line',
    sends: 'its content type twice, joined by a proxy',
    request: { body, headers: ['Content-Type: application/json,application/json'] },
    response: [200, RUNS],
  },
  {
    report: 'graphql-python/graphql-server#114',
    sends: 'two content types',
    request: { body, headers: ['Content-Type: application/json', 'Content-Type: text/plain'] },
    response: [415, /got \\"application\/json, text\/plain\\"/],
  },
  {
    report: 'graphql-python/graphql-server#114, Authorization',
    sends: 'its API key twice',
    request: {
      body: json({ query: '{ pets(limit: 1) { id } }' }),
      headers: ['Authorization: Bearer demo-free', 'Authorization: Bearer demo-free'],
    },
    response: [200, /"data":\{"pets":\[/],
  },
  {
    report: 'dolmens/gptel-aibo#17',
    sends: 'a byte order mark before its JSON',
    request: { body: `\uFEFF${body}` },
    response: [200, RUNS],
  },
  {
    report: 'hasura/graphql-engine#5324',
    sends: 'a compressed body',
    request: { body: gzipSync(body), headers: ['Content-Encoding: gzip'] },
    response: [415, /^accept-encoding: identity\r$/im, /without a Content-Encoding/],
  },
  {
    report: 'async-graphql/async-graphql#879',
    sends: 'a plain body that says that it is compressed',
    request: { body, headers: ['Content-Encoding: gzip'] },
    response: [415, /^accept-encoding: identity\r$/im],
  },
  {
    report: 'RFC 9112, section 3.2',
    sends: 'two Host lines',
    request: { body, headers: ['Host: petql', 'Host: petql'] },
    response: [400],
  },
];

const DOCUMENTS: readonly Report[] = [
  {
    report: 'apollographql/apollo-kotlin#4787',
    sends: 'the hash of a document that is not in the manifest of another app',
    request: { body: json({ extensions: { persistedQuery: { version: 1, sha256Hash: 'ab' } } }) },
    response: [200, /"message":"PersistedQueryNotSupported"/],
  },
  {
    report: 'grafbase/grafbase#2505',
    sends: 'such a hash beside an empty query',
    request: { body: json({ query: '', extensions: { persistedQuery: { version: 1, sha256Hash: 'ab' } } }) },
    response: [200, /"message":"PersistedQueryNotSupported"/],
  },
  {
    report: 'Kong/insomnia#1086',
    sends: 'introspection, where data may have one level alone',
    request: { body: json({ query: getIntrospectionQuery(), operationName: 'IntrospectionQuery' }) },
    response: [200, /"data":\{"__schema":\{/],
  },
];

export const REPORTS: readonly Report[] = [
  ...EMPTY_TEXTS,
  ...VARIABLES,
  ...ADDRESSES,
  ...ORIGINS,
  ...ACCEPTED,
  ...BODIES,
  ...DOCUMENTS,
];
