import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/index.ts';
import { listen } from '../../src/server/listener.ts';
import { graphqlRequest, startEmbedded } from '../support/start-embedded.ts';

const FIRST = '{ pets(limit: 1) { id } }';

describe('fetch', () => {
  test("answers with a Response of the platform's own class, which is how frameworks know one", async () => {
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

  test('takes what frameworks hand over with the request for no part of it', async () => {
    await using gateway = await startEmbedded();
    // A Next.js route handler, named as that framework wants it.
    const POST: (request: Request, context: object) => Promise<Response> = gateway.fetch;
    const context = { params: Promise.resolve({ query: '{ none }' }), request: undefined, terms: { apiKey: 'stray' } };
    const response = await POST(graphqlRequest({ query: FIRST }), context);
    expect(await response.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });
    expect(gateway.sandbox.calls.map(({ key }) => key)).toEqual(['demo-free']);
  });

  test.each([262_145, 10_000_000])(
    'refuses a body of %i bytes with HTTP 413, whether it says its length or not',
    async (bytes) => {
      await using gateway = await startEmbedded();
      const body = `{"query":"${' '.repeat(bytes - 12)}"}`;
      let pulled = 0;
      const stream = new ReadableStream({
        pull(controller) {
          const chunk = body.slice(pulled, pulled + 65_536);
          pulled += chunk.length;
          if (chunk === '') controller.close();
          else controller.enqueue(new TextEncoder().encode(chunk));
        },
      });
      for (const init of [{ body }, { body: stream, duplex: 'half' as const }]) {
        const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };
        const response = await gateway.fetch(
          new Request('http://localhost/graphql', { method: 'POST', headers, ...init }),
        );
        expect(response.status).toBe(413);
        expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'LIMIT_EXCEEDED' } }] });
      }
      // Not read to its end.
      expect(pulled).toBeLessThan(600_000);
      expect((await gateway.fetch(graphqlRequest({ query: FIRST }))).status).toBe(200);
    },
  );

  test('answers at the endpoint that was asked for, GraphiQL too', async () => {
    await using gateway = await startEmbedded({ endpoint: '/api/graphql' });
    const url = 'http://localhost/api/graphql';
    const answer = await gateway.fetch(new Request(url, graphqlRequest({ query: '{ __typename }' })));
    expect(await answer.json()).toMatchObject({ data: { __typename: 'Query' } });
    const page = await (await gateway.fetch(new Request(url, { headers: { accept: 'text/html' } }))).text();
    const script = /<script src="([^"]+)"/.exec(page)?.[1] ?? '';
    expect(script).toMatch(/^\/api\/graphql\/graphiql\//);
    expect((await gateway.fetch(new Request(new URL(script, url)))).status).toBe(200);
    expect((await gateway.fetch(graphqlRequest({ query: FIRST }))).status).toBe(404);
  });

  test('does not reject for a visitor who is gone, and does not call for them', async () => {
    await using gateway = await startEmbedded();
    const abort = new AbortController();
    abort.abort();
    const response = await gateway.fetch(new Request(graphqlRequest({ query: FIRST }), { signal: abort.signal }));
    expect(response).toBeInstanceOf(Response);
    expect(gateway.sandbox.calls).toHaveLength(0);
  });
});

describe("the server's own key", () => {
  test("serves visitors without one, and the visitor's is neither read nor forwarded", async () => {
    await using gateway = await startEmbedded({ petApiKey: 'demo-pro' });
    for (const headers of [{}, { authorization: 'Bearer demo-free' }, { authorization: 'Basic not even bearer' }]) {
      const response = await gateway.fetch(graphqlRequest({ query: FIRST }, headers));
      expect(await response.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });
    }
    expect(new Set(gateway.sandbox.calls.map(({ key }) => key))).toEqual(new Set(['demo-pro']));
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
    expect(new Set(gateway.sandbox.calls.map(({ key }) => key))).toEqual(new Set(['demo-pro', 'demo-business']));
  });

  test('that is not there for a request is UNAUTHENTICATED, whatever the visitor sends', async () => {
    await using gateway = await startEmbedded({ petApiKey: () => undefined });
    const response = await gateway.fetch(graphqlRequest({ query: FIRST }));
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test.each<[string, () => unknown]>([
    ['a list', () => ['demo-free']],
    ['bytes', () => Buffer.from('demo-free')],
    ['a number', () => 5],
  ])('that a function finds as %s is none, and the log says so without it', async (_name, find) => {
    await using gateway = await startEmbedded({ petApiKey: find as () => string });
    const response = await gateway.fetch(graphqlRequest({ query: FIRST }));
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect(gateway.sandbox.calls).toHaveLength(0);
    const lines = gateway.logLines.filter(({ level }) => level >= 50);
    expect(lines).toMatchObject([{ msg: expect.stringMatching(/^petApiKey: expected .* a string/) }]);
    expect(JSON.stringify(lines)).not.toContain('demo-free');
  });

  test.each([null, ''])('that a function finds as %j is none, and nothing to log', async (found) => {
    await using gateway = await startEmbedded({ petApiKey: () => found });
    expect((await gateway.fetch(graphqlRequest({ query: FIRST }))).status).toBe(401);
    expect(gateway.sandbox.calls).toHaveLength(0);
    expect(gateway.logLines.filter(({ level }) => level >= 50)).toEqual([]);
  });

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
    const parsers = [
      (text: string) => JSON.parse(text) as unknown,
      (text: string) => text,
      (text: string) => Buffer.from(text),
      (text: string) => new TextEncoder().encode(text),
    ];
    for (const parser of parsers) {
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
  const handler = async (request: IncomingMessage, response: ServerResponse) => {
    await before(request);
    await handle(request, response);
  };
  const { origin, stop } = await listen(handler, { host: '127.0.0.1', port: 0 });
  const { method, headers } = graphqlRequest({});
  const response = await fetch(`${origin}/graphql`, { method, headers, body: JSON.stringify({ query: FIRST }) });
  const body: unknown = await response.json();
  await stop(0);
  return { status: response.status, body };
}
