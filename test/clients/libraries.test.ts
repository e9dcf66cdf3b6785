import { createHash } from 'node:crypto';
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client';
import { CombinedGraphQLErrors } from '@apollo/client/errors';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { Client, fetchExchange } from '@urql/core';
import { GraphQLClient } from 'graphql-request';
import type { ClientError } from 'graphql-request';
import { expect, test } from 'vitest';
import { startEmbedded } from '../support/start-gateway.ts';

const LINK = { uri: 'http://localhost/graphql', headers: { authorization: 'Bearer demo-free' } };

test.each([
  ['without a manifest', {}],
  ['beside the manifest of another app', { trustedDocuments: { other: '{ pets { name } }' } }],
])('automatic persisted queries of Apollo Client fall back to texts %s', async (_name, options) => {
  await using gateway = await startEmbedded(options);
  const asked: string[] = [];
  const fetchOf = async (uri: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(uri, init);
    asked.push(await request.clone().text());
    return gateway.fetch(request);
  };
  const http = new HttpLink({ ...LINK, fetch: fetchOf });
  const sha256 = (document: string) => createHash('sha256').update(document).digest('hex');
  const link = ApolloLink.from([new PersistedQueryLink({ sha256 }), http]);
  const client = new ApolloClient({ link, cache: new InMemoryCache() });
  for (const limit of [1, 2]) {
    const { data } = await client.query<{ pets: object[] }>({ query: gql(`{ pets(limit: ${limit}) { id } }`) });
    expect(data?.pets).toHaveLength(limit);
  }
  // Only the first query was sent by its hash.
  expect(asked.map((body) => body.includes('"query"'))).toEqual([false, true, true]);
});

const PARTIAL = '{ pets(limit: 1) { id } none: pets(limit: 0) { id } }';
const INVALID = '{ cats { id } }';
/** What each client makes of a document: its data, and the codes of its errors. */
const ASKING: Readonly<Record<string, (document: string, send: typeof fetch) => Promise<Shown>>> = {
  async 'Apollo Client'(document, send) {
    const link = new HttpLink({ ...LINK, fetch: send });
    const client = new ApolloClient({ link, cache: new InMemoryCache() });
    const { data, error } = await client.query({ query: gql(document), errorPolicy: 'all' });
    return { data, codes: CombinedGraphQLErrors.is(error) ? codesOf(error.errors) : [] };
  },
  async urql(document, send) {
    const client = new Client({
      url: LINK.uri,
      exchanges: [fetchExchange],
      preferGetMethod: false,
      fetch: send,
      fetchOptions: { headers: LINK.headers },
    });
    const { data, error } = await client.query(document, {});
    return { data, codes: codesOf(error?.graphQLErrors) };
  },
  async 'graphql-request'(document, send) {
    const client = new GraphQLClient(LINK.uri, { headers: LINK.headers, fetch: send, errorPolicy: 'all' });
    const { data, errors } = await client.rawRequest(document).catch((error: ClientError) => error.response);
    return { data, codes: codesOf(errors) };
  },
};

interface Shown {
  readonly data: unknown;
  readonly codes: unknown[];
}

function codesOf(errors: readonly { readonly extensions?: Record<string, unknown> }[] = []): unknown[] {
  return errors.map(({ extensions }) => extensions?.['code']);
}

test.each(Object.entries(ASKING))(
  '%s shows data beside errors, and what is wrong with a document',
  async (_name, ask) => {
    await using gateway = await startEmbedded();
    const statuses: number[] = [];
    const send: typeof fetch = async (uri, init) => {
      const response = await gateway.fetch(new Request(uri, init));
      statuses.push(response.status);
      return response;
    };
    const partial = await ask(PARTIAL, send);
    expect(partial).toMatchObject({ data: { pets: [{ id: '1' }], none: null }, codes: ['BAD_USER_INPUT'] });
    expect((await ask(INVALID, send)).codes).toEqual(['GRAPHQL_VALIDATION_FAILED']);
    expect(statuses).toEqual([294, 422]);
  },
);
