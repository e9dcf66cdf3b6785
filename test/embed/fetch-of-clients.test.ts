import { setImmediate } from 'node:timers/promises';
import { ApolloClient, HttpLink, InMemoryCache, gql } from '@apollo/client';
import { expect, test } from 'vitest';
import { slow } from '../support/pet-api/fault.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

const FIRST = '{ pets(limit: 1) { id } }';
const init = {
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' },
  body: JSON.stringify({ query: FIRST }),
};
const EXPECTED = { data: { pets: [{ id: '1' }] } };

test.each([
  ['an address', 'http://localhost/graphql'],
  ['the address of another host', 'https://app.example/graphql'],
  ['a path', '/graphql'],
  ['a URL', new URL('http://localhost/graphql')],
  ['a Request', new Request('http://localhost/graphql')],
])('fetch takes %s and an init', async (_name, input) => {
  await using gateway = await startEmbedded();
  const asFetch: typeof fetch = gateway.fetch;
  const response = await asFetch(input, init);
  expect([response.status, await response.json()]).toMatchObject([200, EXPECTED]);
});

test('fetch takes a path alone', async () => {
  await using gateway = await startEmbedded({ petApiKey: () => 'demo-pro' });
  expect(await (await gateway.fetch('/health/ready')).json()).toMatchObject({ status: 'ok' });
});

test('fetch is the one of Apollo Client, which sends to /graphql by default', async () => {
  await using gateway = await startEmbedded({ petApiKey: 'demo-pro' });
  const client = new ApolloClient({ link: new HttpLink({ fetch: gateway.fetch }), cache: new InMemoryCache() });
  expect(await client.query({ query: gql(FIRST) })).toMatchObject(EXPECTED);
});

test.each<[string, Parameters<typeof fetch>]>([
  ['a GET with a body', ['/graphql', { ...init, method: 'GET' }]],
  ['a method that is none', ['/graphql', { ...init, method: 'NO METHOD' }]],
  ['a header that is none', ['/graphql', { headers: { 'no header': '1' } }]],
  ['an address that is none', ['http://']],
])('fetch rejects %s with a TypeError', async (_name, [input, wrong]) => {
  await using gateway = await startEmbedded();
  await expect(gateway.fetch(input, wrong)).rejects.toThrow(TypeError);
});

test('fetch rejects with the reason of its signal, before and while it waits, and makes no call', async () => {
  await using gateway = await startEmbedded();
  gateway.petApi.fault = slow(200);
  const first = gateway.execute({ document: FIRST, apiKey: 'demo-free' });
  await until(() => gateway.petApi.log.length > 0);
  const abort = new AbortController();
  const body = JSON.stringify({ query: '{ pet(id: "2") { id } }' });
  const waiting = gateway.fetch('/graphql', { ...init, body, signal: abort.signal });
  await setImmediate();
  abort.abort(new Error('the client left'));
  await expect(waiting).rejects.toThrow('the client left');
  await expect(gateway.fetch('/graphql', { ...init, signal: abort.signal })).rejects.toThrow('the client left');
  expect((await first).errors).toBeUndefined();
  expect(gateway.petApi.log).toHaveLength(1);
});
