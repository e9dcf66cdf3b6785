import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/index.ts';
import { serve } from '../support/serve.ts';
import { graphqlRequest, startEmbedded } from '../support/start-gateway.ts';

const FIRST = '{ pets(limit: 1) { id } }';

describe('fetch', () => {
  test("answers with a Response of the platform's class", async () => {
    await using gateway = await startEmbedded();
    for (const request of [
      graphqlRequest({ query: FIRST }),
      graphqlRequest({ query: '{' }),
      graphqlRequest({ query: FIRST }, { accept: 'text/xml' }),
      new Request('http://localhost/graphql', { headers: { accept: 'text/html' } }),
      new Request('http://localhost/elsewhere'),
    ]) {
      const response = await gateway.fetch(request);
      expect(response).toBeInstanceOf(Response);
      expect(response.headers).toBeInstanceOf(Headers);
    }
  });

  test('ignores what frameworks pass beside the request', async () => {
    await using gateway = await startEmbedded();
    const handler: (request: Request, context: object) => Promise<Response> = gateway.fetch;
    const context = { params: Promise.resolve({ query: '{ none }' }), request: undefined, terms: { apiKey: 'stray' } };
    const response = await handler(graphqlRequest({ query: FIRST }), context);
    expect(await response.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });
    expect(gateway.petApi.log.map(({ key }) => key)).toEqual(['demo-free']);
  });

  test('answers at the endpoint that was asked for, GraphiQL too', async () => {
    await using gateway = await startEmbedded({ endpoint: '/api/graphql' });
    const url = 'http://localhost/api/graphql';
    const answer = await gateway.fetch(new Request(url, graphqlRequest({ query: '{ __typename }' })));
    expect(await answer.json()).toMatchObject({ data: { __typename: 'Query' } });
    const page = await (await gateway.fetch(new Request(url, { headers: { accept: 'text/html' } }))).text();
    const script = /<script src="([^"]+)"/.exec(page)?.[1] ?? '';
    expect(new URL(script, url).pathname).toMatch(/^\/api\/graphql\/graphiql\//);
    expect((await gateway.fetch(new Request(new URL(script, url)))).status).toBe(200);
    expect((await gateway.fetch(graphqlRequest({ query: FIRST }))).status).toBe(404);
  });

  test('does not reject for a client that left, and makes no call', async () => {
    await using gateway = await startEmbedded();
    const abort = new AbortController();
    abort.abort();
    const response = await gateway.fetch(new Request(graphqlRequest({ query: FIRST }), { signal: abort.signal }));
    expect(response).toBeInstanceOf(Response);
    expect(gateway.petApi.log).toHaveLength(0);
  });
});

describe("the server's key", () => {
  test('serves clients without one, and never forwards theirs', async () => {
    await using gateway = await startEmbedded({ petApiKey: 'demo-pro' });
    for (const headers of [{}, { authorization: 'Bearer demo-free' }, { authorization: 'Basic not even bearer' }]) {
      const response = await gateway.fetch(graphqlRequest({ query: FIRST }, headers));
      expect(await response.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });
    }
    expect(new Set(gateway.petApi.log.map(({ key }) => key))).toEqual(new Set(['demo-pro']));
  });

  test('can be found for each request, once for each', async () => {
    const asked: (string | null)[] = [];
    await using gateway = await startEmbedded({
      petApiKey: async ({ headers }) => {
        asked.push(headers.get('cookie'));
        return headers.get('cookie') === 'plan=pro' ? 'demo-pro' : 'demo-business';
      },
    });
    for (const cookie of ['plan=pro', 'plan=other']) {
      const query = '{ a: pet(id: "1") { id } b: pet(id: "2") { id } }';
      const response = await gateway.fetch(graphqlRequest({ query }, { cookie, authorization: 'Bearer demo-free' }));
      expect(response.status).toBe(200);
    }
    expect(asked).toEqual(['plan=pro', 'plan=other']);
    expect(new Set(gateway.petApi.log.map(({ key }) => key))).toEqual(new Set(['demo-pro', 'demo-business']));
  });

  test.each<[unknown, number]>([
    [undefined, 0],
    [null, 0],
    ['', 0],
    [['demo-free'], 1],
    [Buffer.from('demo-free'), 1],
    [5, 1],
  ])(
    'that a function finds as %j is UNAUTHENTICATED, and what is no key is logged without it',
    async (found, lines) => {
      await using gateway = await startEmbedded({ petApiKey: () => found as string });
      const response = await gateway.fetch(graphqlRequest({ query: FIRST }));
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
      expect(gateway.petApi.log).toHaveLength(0);
      const errors = gateway.logLines.filter(({ level }) => level >= 50);
      expect(errors).toHaveLength(lines);
      for (const { msg } of errors) expect(msg).toMatch(/petApiKey/);
      expect(JSON.stringify(errors)).not.toContain('demo-free');
    },
  );

  test('that cannot be found for a fault is masked', async () => {
    await using gateway = await startEmbedded({
      petApiKey: () => Promise.reject(new Error('the vault says: secret')),
    });
    const response = await gateway.fetch(graphqlRequest({ query: FIRST }));
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(text).toContain('INTERNAL_SERVER_ERROR');
    expect(text).not.toContain('secret');
    expect(gateway.logLines).toContainEqual(
      expect.objectContaining({ err: expect.objectContaining({ message: 'the vault says: secret' }) }),
    );
  });
});

describe('handle', () => {
  test('joins several Cookie lines as Node does (RFC 9113, section 8.2.3)', async () => {
    const cookies: (string | null)[] = [];
    const petApiKey = ({ headers }: Request) => {
      cookies.push(headers.get('cookie'));
      return 'demo-pro';
    };
    await using gateway = await startEmbedded({ petApiKey });
    await using server = await serve(gateway.handle);
    const headers = { 'content-type': 'application/json', cookie: ['a=1', 'plan=pro'] };
    const sent = httpRequest(`${server.origin}/graphql`, { method: 'POST', headers });
    sent.end(JSON.stringify({ query: FIRST }));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    await response.toArray();
    expect(cookies).toEqual(['a=1; plan=pro']);
  });

  test('serves below a path that a framework cut off', async () => {
    await using gateway = await startEmbedded();
    const answer = await throughNode(gateway, (request: IncomingMessage & { originalUrl?: string }) => {
      request.originalUrl = request.url ?? '';
      request.url = '/';
    });
    expect(answer).toMatchObject({ status: 200, body: { data: { pets: [{ id: '1' }] } } });
  });

  test("takes the body that a framework's parser has read, as an object, a text or bytes", async () => {
    await using gateway = await startEmbedded();
    const encoder = new TextEncoder();
    for (const parser of [
      JSON.parse,
      String,
      (text: string) => Buffer.from(text),
      (text: string) => encoder.encode(text),
    ]) {
      const answer = await throughNode(gateway, async (request: IncomingMessage & { body?: unknown }) => {
        request.body = parser((await request.setEncoding('utf8').toArray()).join(''));
      });
      expect(answer).toMatchObject({ status: 200, body: { data: { pets: [{ id: '1' }] } } });
    }
  });

  test('answers when a parser has read the body and kept nothing', async () => {
    await using gateway = await startEmbedded();
    const answer = await throughNode(gateway, async (request) => void (await request.toArray()));
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] } });
  });
});

/** One operation over a real http server, with something that happens to the request before petql sees it. */
async function throughNode(
  { handle }: Gateway,
  before: (request: IncomingMessage) => Promise<void> | void,
): Promise<{ status: number; body: unknown }> {
  await using server = await serve((request, response) => {
    void Promise.resolve(before(request)).then(() => handle(request, response));
  });
  const { method, headers } = graphqlRequest({});
  const response = await fetch(`${server.origin}/graphql`, { method, headers, body: JSON.stringify({ query: FIRST }) });
  return { status: response.status, body: await response.json() };
}
