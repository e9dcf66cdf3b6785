import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { serve } from '../support/serve.ts';
import type { Served } from '../support/serve.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import type { EmbeddedGateway } from '../support/start-gateway.ts';
import { CLIENTS, runSnippet } from './snippets.ts';

const EXHAUSTED = 'demo-exhausted';
const RETRY_AFTER_MS = 40;

let gateway: EmbeddedGateway;
let server: Served;
/** When each request came, by `performance.now()`. */
let cameAtMs: number[] = [];
let printed: unknown[] = [];

beforeEach(async () => {
  await close();
  cameAtMs = [];
  printed = [];
  const keys = {
    'demo-free': { name: 'Free', perMinute: 60, perDay: 1_000 },
    [EXHAUSTED]: { name: 'tiny', perMinute: 1, perDay: 50 },
  };
  gateway = await startEmbedded({}, { keys });
  await gateway.execute({ document: '{ pets { id } }', apiKey: EXHAUSTED });
  server = await serve((request, response) => {
    cameAtMs.push(performance.now());
    void text(request)
      .then((body) => answerTo(body, request.headers.authorization ?? ''))
      .then((answer) => response.writeHead(200, { 'content-type': 'application/json' }).end(answer));
  });
});
afterAll(close);

test.each(CLIENTS)('with %s lists, reads extensions, creates, and retries after retryAfterMs', async (name) => {
  await runSnippet(name, { origin: server.origin, print: (...values) => printed.push(...values) });
  const pets = printed.find((value) => Array.isArray(value));
  expect(pets).toHaveLength(20);
  expect(pets?.[0]).toMatchObject({ id: '1', name: 'Ada' });
  expect(printed).toContainEqual({ upstreamCalls: 1, savedCalls: 0, oldestAgeMs: expect.any(Number) });
  expect(printed).toContainEqual(
    expect.objectContaining({ pet: expect.objectContaining({ id: expect.any(String) }), userErrors: [] }),
  );
  const [firstMs = 0, secondMs = 0, ...more] = cameAtMs;
  expect(secondMs - firstMs).toBeGreaterThanOrEqual(RETRY_AFTER_MS - 1);
  expect(more).toHaveLength(1);
});

test('automatic persisted queries of Apollo Client fall back to texts', async () => {
  const asked: string[] = [];
  const fetchOf = async (uri: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(uri, init);
    asked.push(await request.clone().text());
    return gateway.fetch(request);
  };
  const http = new HttpLink({
    uri: 'http://localhost/graphql',
    headers: { authorization: 'Bearer demo-free' },
    fetch: fetchOf,
  });
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

/** petql's own response. The first request comes with a key whose minute is exhausted, and is told to wait for a moment only. */
async function answerTo(body: string, authorization: string): Promise<string> {
  const isFirst = cameAtMs.length === 1;
  const exhausted = { authorization: `Bearer ${EXHAUSTED}`, 'cache-control': 'no-cache', prefer: 'wait=0' };
  const headers = { 'content-type': 'application/json', ...(isFirst ? exhausted : { authorization }) };
  const response = await gateway.fetch(new Request('http://localhost/graphql', { method: 'POST', headers, body }));
  const answer = await response.text();
  if (!isFirst) return answer;
  expect(answer).toContain('"code":"RATE_LIMITED"');
  return answer.replace(/"retryAfterMs":\d+/, `"retryAfterMs":${RETRY_AFTER_MS}`);
}

async function close(): Promise<void> {
  await server?.[Symbol.asyncDispose]();
  await gateway?.[Symbol.asyncDispose]();
}
