import { createSandbox } from '../../../src/program/sandbox/sandbox.ts';
import { startEmbedded } from '../../support/start-gateway.ts';
import { FIELDS, FIELD_NAMES } from '../../support/pet-api/contract.ts';
import type { FieldName } from '../../support/pet-api/contract.ts';
import { HEADER_FORMS } from '../../support/pet-api/headers.ts';
import { UNLIMITED } from '../../support/pet-api/strict-plan.ts';
import type { Fault } from '../../support/pet-api/fault.ts';

/** A place at which a parser of petql reads a text of others. */
export interface Place {
  readonly name: string;
  /** The longest text there, in bytes. */
  readonly maxBytes: number;
  /** Has petql read it, and returns once it has. */
  readonly read: (text: string) => Promise<unknown>;
}

interface SandboxCall {
  readonly method?: string;
  readonly body?: string;
  readonly authorization?: string;
}

/** Of a header: Node takes 16 KiB for all of them. */
const HEADER_BYTES = 8_000;
/** Of an upstream body, an eighth of the most: what is quadratic shows. */
const UPSTREAM_BYTES = 131_072;
/** Of a request's body. */
const BODY_BYTES = 60_000;
const KEY = 'key';
const LIST = '{ pets { id } }';
const CREATE = 'mutation { createPet(input: { name: "Ada", categoryId: 1 }) { pet { id } } }';

/** What an upstream sends. */
const FAULTS: Readonly<Record<string, (text: string) => Fault>> = {
  'an upstream body': (body) => ({ body }),
  'a number in a pet': (text) => ({ body: `[{"id":1,"name":"Ada","categoryId":1,"weight":${text}}]` }),
  ...Object.fromEntries(
    FIELD_NAMES.map((name) => [`the ${name} of a pet`, (text: string) => ({ body: bodyWith(name, text) })]),
  ),
  'an Error body': (text) => ({ status: 404, body: `{"code":"a","message":"${text}","status":404}` }),
  // A 5xx is tried again after a pause.
  'a page of a proxy': (body) => ({ status: 501, body }),
};

/** A list of one pet that has this text in one field, a number as digits. */
function bodyWith(field: FieldName, text: string): string {
  const members = FIELD_NAMES.map((name) => {
    switch (FIELDS[name].kind) {
      case 'int64':
        return `"${name}":${name === field ? text : 1}`;
      case 'text':
        return `"${name}":"${name === field ? text : 'Ada'}"`;
      case 'enum':
        return name === field ? `"${name}":"${text}"` : '';
    }
  });
  return `[{${members.filter(Boolean).join(',')}}]`;
}

const UPSTREAM_HEADERS = ['link', ...Object.keys(HEADER_FORMS), 'content-encoding', 'content-type'];
const HEADERS = [
  'accept',
  'authorization',
  'cache-control',
  'content-type',
  'prefer',
  'priority',
  'traceparent',
  'tracestate',
  'origin',
  'cookie',
  'accept-encoding',
  'user-agent',
  'x-forwarded-for',
  'petql-dry-run',
  'x-request-id',
  'x-apollo-operation-name',
  'apollographql-client-name',
];

/** The parsers of the gateway and of the sandbox, each by what it reads. */
export async function openPlaces(resources: AsyncDisposableStack): Promise<readonly Place[]> {
  const gateway = resources.use(
    await startEmbedded(
      { plan: '100000000/900000000', visitorHeader: 'x-forwarded-for', corsOrigins: ['https://a.example'] },
      { planOf: () => UNLIMITED },
    ),
  );
  const sandbox = resources.use(createSandbox());
  const sandboxUrl = await sandbox.listen();

  const upstream = async (document: string, fault: Fault) => {
    gateway.petApi.fault = fault;
    gateway.petApi.log.length = 0;
    await gateway.execute({ document, apiKey: KEY, cacheControl: 'no-cache', waitMs: 0 });
  };
  const post = (body: string, headers: Readonly<Record<string, string>> = {}) => {
    gateway.petApi.fault = undefined;
    const all = { 'content-type': 'application/json', authorization: `Bearer ${KEY}`, ...headers };
    return read(gateway.fetch(new Request('http://localhost/graphql', { method: 'POST', headers: all, body })));
  };
  const get = (query: string) => read(gateway.fetch(new Request(`http://localhost/graphql?${query}`)));
  const call = (path: string, { authorization = 'Bearer demo-enterprise', ...init }: SandboxCall = {}) =>
    read(fetch(sandboxUrl + path, { ...init, headers: { authorization } }));

  const body = (name: string, at: (text: string) => Promise<unknown>) => ({ name, maxBytes: BODY_BYTES, read: at });
  const header = (name: string, at: (text: string) => Promise<unknown>) => ({
    name,
    maxBytes: HEADER_BYTES,
    read: (text: string) => at(headerText(text)),
  });
  return [
    ...Object.entries(FAULTS).flatMap(([name, faultOf]) =>
      [LIST, '{ pet(id: "1") { id } }', CREATE].map((document) => ({
        name: `${name}, of ${document}`,
        maxBytes: UPSTREAM_BYTES,
        read: (text: string) => upstream(document, faultOf(text)),
      })),
    ),
    ...UPSTREAM_HEADERS.map((name) =>
      header(`the upstream's ${name}`, (text) => upstream(LIST, { headers: { [name]: text } })),
    ),
    body('a document', (text) => post(JSON.stringify({ query: text }))),
    body('a body', (text) => post(text)),
    body('a variable', (text) =>
      post(`{"query":"query ($id: ID!) { pet(id: $id) { id } }","variables":{"id":${text}}}`),
    ),
    body('a string in a variable', (text) => post(`{"query":"{ __typename }","variables":{"id":"${text}"}}`)),
    ...HEADERS.map((name) =>
      header(`the header ${name}`, (text) => post(JSON.stringify({ query: LIST }), { [name]: text })),
    ),
    header('the query of a GET', (text) => get(`query=${text}`)),
    header('the query string', (text) => get(text)),
    body('a body of the sandbox', (text) => call('/pets', { method: 'POST', body: text })),
    body('a category of the sandbox', (text) =>
      call('/pets', { method: 'POST', body: `{"name":"a","categoryId":${text}}` }),
    ),
    body('a name of the sandbox', (text) =>
      call('/pets', { method: 'POST', body: `{"name":"${text}","categoryId":1}` }),
    ),
    header('a path of the sandbox', (text) => call(`/pets/${encodeURI(text)}`)),
    header('a query of the sandbox', (text) => call(`/pets?limit=${encodeURIComponent(text)}`)),
    header('a key of the sandbox', (text) => call('/pets', { authorization: text })),
  ];
}

/** What a header may hold. */
function headerText(text: string): string {
  return Buffer.from(text)
    .toString('latin1')
    .replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '');
}

async function read(responding: Promise<Response> | Response): Promise<void> {
  const response = await responding;
  await response.arrayBuffer();
}
