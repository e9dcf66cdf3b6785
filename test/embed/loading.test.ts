import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { listen } from '../../src/server/listener.ts';
import { createNodeHandler } from '../../src/server/node-handler.ts';
import { graphqlRequest, startEmbedded } from '../support/start-embedded.ts';
import type { EmbeddedGateway } from '../support/start-embedded.ts';

const loads = vi.hoisted(() => ({ failing: 0 }));

vi.mock(import('../../src/server/graphql-server.ts'), async (load) => {
  const { createGraphqlServer } = await load();
  return {
    createGraphqlServer(options) {
      if (loads.failing-- > 0) throw new Error('EMFILE: too many open files, open the inner secret');
      return createGraphqlServer(options);
    },
  };
});

const FIRST = '{ pets(limit: 1) { id } }';
const apiKey = 'demo-free';
/** What only the GraphQL server answers. */
const DRY_RUN = { authorization: `Bearer ${apiKey}`, 'petql-dry-run': '1' };

beforeEach(() => {
  loads.failing = 1;
});
afterEach(() => {
  loads.failing = 0;
});

/** What a client is told of it: nothing but an id that the log has too. */
function expectMasked({ logLines }: EmbeddedGateway, body: any): void {
  expect(body).toEqual({
    errors: [
      {
        message: expect.any(String),
        extensions: { code: 'INTERNAL_SERVER_ERROR', id: expect.stringMatching(/.{36}/) },
      },
    ],
  });
  expect(JSON.stringify(body)).not.toContain('secret');
  expect(logLines).toContainEqual(
    expect.objectContaining({
      id: body.errors[0].extensions.id,
      err: expect.objectContaining({ message: expect.stringContaining('the inner secret') }),
    }),
  );
}

test('a GraphQL server that cannot be loaded is a fault of petql to whoever asked, and loaded for whoever asks next', async () => {
  await using gateway = await startEmbedded({ corsOrigins: ['https://pets.example'] });
  const ask = () => gateway.fetch(graphqlRequest({ query: FIRST }, { ...DRY_RUN, origin: 'https://pets.example' }));
  const failed = await ask();
  expect(failed.status).toBe(500);
  expect(Object.fromEntries(failed.headers)).toMatchObject({
    'access-control-allow-origin': 'https://pets.example',
    'cache-control': 'private, no-store',
    'content-type': expect.stringContaining('application/json'),
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.any(String),
  });
  expectMasked(gateway, await failed.json());
  expect((await ask()).status).toBe(200);
});

test('a GraphQL server that cannot be loaded is an error of what execute answers, once', async () => {
  await using gateway = await startEmbedded();
  expectMasked(gateway, await gateway.execute({ document: FIRST, apiKey }));
  expect((await gateway.execute({ document: FIRST, apiKey })).errors).toBeUndefined();
});

test("over Node's http a fault of petql is HTTP 500 on a connection that goes on, and no fault of the client's", async () => {
  await using gateway = await startEmbedded();
  const { origin, stop } = await listen(gateway.handle, { host: '127.0.0.1', port: 0 });
  const ask = () =>
    fetch(`${origin}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...DRY_RUN },
      body: JSON.stringify({ query: FIRST }),
    });
  const failed = await ask();
  expect([failed.status, failed.headers.get('connection')]).toEqual([500, 'keep-alive']);
  expectMasked(gateway, await failed.json());
  expect((await ask()).status).toBe(200);
  await stop(0);
});

test('a handler that fails without an answer is HTTP 500 too', async () => {
  const handle = createNodeHandler(() => Promise.reject(new Error('broken')), 1_000);
  const { origin, stop } = await listen((request, response: ServerResponse) => handle(request, response), {
    host: '127.0.0.1',
    port: 0,
  });
  expect((await fetch(origin)).status).toBe(500);
  await stop(0);
});
