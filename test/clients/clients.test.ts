import { ApolloClient, HttpLink, InMemoryCache, gql } from '@apollo/client';
import { CombinedGraphQLErrors } from '@apollo/client/errors';
import { Client, fetchExchange } from '@urql/core';
import { ClientError, GraphQLClient } from 'graphql-request';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const QUERY = 'query ($id: ID!) { pet(id: $id) { id name categoryId status } }';
const CREATE =
  'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id name } userErrors { code message } } }';
const BAD = '{ good: pets(limit: 1) { id } bad: pets(limit: 1000) { id } }';

const ANIMAL = { id: '9007199254740993', name: 'Methuselah', categoryId: '9007199254740995', status: 'AVAILABLE' };
const headers = { authorization: 'Bearer demo-free' };

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

/** One way for every client: what it reads, what it writes, and how it shows an error beside data. */
interface AnyClient {
  run(document: string, variables?: Record<string, unknown>): Promise<any>;
  codesOf(document: string): Promise<unknown[]>;
}

const clients: Record<string, () => AnyClient> = {
  '@urql/core': () => {
    const client = new Client({
      url: gateway.endpoint,
      exchanges: [fetchExchange],
      preferGetMethod: false,
      fetchOptions: { headers },
    });
    const send = (document: string, variables = {}) =>
      document.startsWith('mutation')
        ? client.mutation(document, variables).toPromise()
        : client.query(document, variables).toPromise();
    return {
      run: async (document, variables) => (await send(document, variables)).data,
      codesOf: async (document) =>
        (await send(document)).error?.graphQLErrors.map(({ extensions }) => extensions['code']) ?? [],
    };
  },
  'graphql-request': () => {
    const client = new GraphQLClient(gateway.endpoint, { headers });
    return {
      run: (document, variables) => client.request(document, variables),
      codesOf: async (document) => {
        const error: unknown = await client.request(document).catch((thrown: unknown) => thrown);
        return error instanceof ClientError
          ? (error.response.errors?.map(({ extensions }) => extensions['code']) ?? [])
          : [error];
      },
    };
  },
  '@apollo/client': () => {
    const client = new ApolloClient({
      link: new HttpLink({ uri: gateway.endpoint, headers }),
      cache: new InMemoryCache(),
      defaultOptions: { query: { fetchPolicy: 'no-cache' }, mutate: { fetchPolicy: 'no-cache' } },
    });
    return {
      run: async (document, variables = {}) =>
        document.startsWith('mutation')
          ? (await client.mutate({ mutation: gql(document), variables })).data
          : (await client.query({ query: gql(document), variables })).data,
      codesOf: async (document) => {
        const error: unknown = await client.query({ query: gql(document) }).catch((thrown: unknown) => thrown);
        return CombinedGraphQLErrors.is(error) ? error.errors.map(({ extensions }) => extensions?.['code']) : [error];
      },
    };
  },
};

describe.each(Object.keys(clients))('with %s', (name) => {
  const client = () => clients[name]?.() as AnyClient;

  test('a query answers, and keeps every digit of an id', async () => {
    expect(await client().run(QUERY, { id: ANIMAL.id })).toMatchObject({ pet: ANIMAL });
  });

  test('a mutation adds an animal that the next query finds', async () => {
    const { createPet } = await client().run(CREATE, { input: { name: `by ${name}`, categoryId: '3' } });
    expect(createPet).toMatchObject({ pet: { name: `by ${name}` }, userErrors: [] });
    expect(await client().run(QUERY, { id: createPet.pet.id })).toMatchObject({ pet: { name: `by ${name}` } });
  });

  test('what is wrong with the input comes as userErrors', async () => {
    const { createPet } = await client().run(CREATE, { input: { name: ' ', categoryId: '3' } });
    expect(createPet).toMatchObject({ pet: null, userErrors: [{ code: 'bad_request' }] });
  });

  test('an error carries its code', async () => {
    expect(await client().codesOf(BAD)).toEqual(['BAD_USER_INPUT']);
  });
});
