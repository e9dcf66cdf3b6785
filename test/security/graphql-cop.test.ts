import { expect, test } from 'vitest';
import type { GatewayOptions } from '../../src/index.ts';
import { startGateway } from '../support/start-gateway.ts';

/** What the security audit graphql-cop sends and takes as a finding. It is a Python program, so its checks are repeated here. */
interface Finding {
  readonly title: string;
  readonly severity: 'HIGH' | 'INFO' | 'LOW' | 'MEDIUM';
  readonly isFound: (endpoint: string) => Promise<boolean>;
}

const times = (count: number, one: (index: number) => string) =>
  Array.from({ length: count }, (_, k) => one(k)).join(' ');

const SCHEMA_LOOP = `{ __schema { types { ${'fields { type { '.repeat(4)} name ${'} } '.repeat(4)} } } }`;

const FINDINGS: readonly Finding[] = [
  high(
    'alias overloading',
    times(101, (k) => `alias${k}: __typename`),
    ({ data }) => 'alias100' in data,
  ),
  high('directive overloading', `__typename ${'@aa'.repeat(10)}`, ({ errors }) => errors.length === 10),
  high(
    'field duplication',
    times(500, () => '__typename'),
    ({ data }) => '__typename' in data,
  ),
  high('introspection', '__schema { types { name fields { name } } }', ({ data }) => '__schema' in data),
  high('circular introspection', SCHEMA_LOOP.slice(1, -1), ({ data }) => '__schema' in data),
  {
    title: 'batches',
    severity: 'HIGH',
    isFound: async (endpoint) => {
      const answer = await sendJson(
        endpoint,
        Array.from({ length: 10 }, () => ({ query: 'query cop { __typename }' })),
      );
      return Array.isArray(answer);
    },
  },
  {
    title: 'circular fragments',
    severity: 'HIGH',
    isFound: async (endpoint) => {
      const fragments = 'fragment A on __Schema { __typename ...B } fragment B on __Schema { ...A }';
      const answer = await sendJson(endpoint, { query: `query cop { __schema { ...A } } ${fragments}` });
      return (answer as Partial<Answer>).errors === undefined;
    },
  },
  {
    title: 'queries by GET',
    severity: 'MEDIUM',
    isFound: (endpoint) => runsByGet(endpoint, 'query cop { __typename }'),
  },
  {
    title: 'mutations by GET',
    severity: 'MEDIUM',
    isFound: (endpoint) => runsByGet(endpoint, 'mutation cop { __typename }'),
  },
  {
    title: 'queries by a form',
    severity: 'MEDIUM',
    isFound: async (endpoint) => {
      const body = new URLSearchParams({ query: 'query cop { __typename }' });
      return hasRun(await (await fetch(endpoint, { method: 'POST', body })).json());
    },
  },
  {
    title: 'suggestions',
    severity: 'LOW',
    isFound: async (endpoint) => JSON.stringify(await run(endpoint, '__schema { directive }')).includes('Did you mean'),
  },
  {
    title: 'GraphiQL',
    severity: 'LOW',
    isFound: async (endpoint) => {
      const response = await fetch(endpoint, { headers: { accept: 'text/html' } });
      return (await response.text()).includes('GraphiQL');
    },
  },
  { title: 'trace mode', severity: 'INFO', isFound: (endpoint) => shows(endpoint, /"tracing"|stacktrace/i) },
  { title: 'unhandled errors', severity: 'INFO', isFound: (endpoint) => shows(endpoint, /"exception"/i) },
];

interface Answer {
  readonly data: Readonly<Record<string, unknown>>;
  readonly errors: readonly object[];
}

function high(title: string, selections: string, isBad: (answer: Answer) => boolean): Finding {
  return { title, severity: 'HIGH', isFound: async (endpoint) => isBad(await run(endpoint, selections)) };
}

async function run(endpoint: string, selections: string): Promise<Answer> {
  const answer = await sendJson(endpoint, { query: `query cop { ${selections} }`, operationName: 'cop' });
  return { data: {}, errors: [], ...(answer as Partial<Answer>) };
}

async function runsByGet(endpoint: string, query: string): Promise<boolean> {
  return hasRun(await (await fetch(`${endpoint}?${new URLSearchParams({ query }).toString()}`)).json());
}

async function sendJson(endpoint: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  return (await fetch(endpoint, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}

/** Looks for debugging details in results of a valid and of an unparsable document. */
async function shows(endpoint: string, details: RegExp): Promise<boolean> {
  const queries = ['query cop { __typename }', 'qwerty cop { abc }'];
  const answers = await Promise.all(queries.map((query) => sendJson(endpoint, { query })));
  return details.test(JSON.stringify(answers));
}

function hasRun(answer: unknown): boolean {
  return (answer as Partial<Answer>).data?.['__typename'] !== undefined;
}

/** README, "Before you expose petql to the public". */
const PUBLIC = { graphiql: false, introspection: false } as const;

test.each<[string, Partial<GatewayOptions>, string[]]>([
  ['as it starts', {}, ['HIGH introspection', 'MEDIUM queries by GET', 'LOW suggestions', 'LOW GraphiQL']],
  ['with the settings for the public', PUBLIC, ['MEDIUM queries by GET']],
  ['with those and a server-side key', { ...PUBLIC, petApiKey: 'demo-pro' }, []],
])('what an audit finds on a petql %s', async (_name, options, expected) => {
  await using gateway = await startGateway({ gateway: options });
  const found: string[] = [];
  for (const { title, severity, isFound } of FINDINGS) {
    if (await isFound(gateway.endpoint)) found.push(`${severity} ${title}`);
  }
  expect(found).toEqual(expected);
});
