import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/index.ts';
import { post } from '../support/client.ts';
import { serve } from '../support/serve.ts';
import { graphqlRequest, startEmbedded } from '../support/start-gateway.ts';

const FIRST = '{ pets(limit: 1) { id } }';

/** What a client gets that cannot mend it. */
const BODY_TAKEN = {
  status: 500,
  body: {
    errors: [
      {
        message: expect.stringContaining('has read the body of this request before petql'),
        extensions: { code: 'INTERNAL_SERVER_ERROR' },
      },
    ],
  },
};

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
    const handler: (request: Request, context: any) => Promise<Response> = gateway.fetch;
    const route = { params: Promise.resolve({ query: '{ none }' }), request: undefined, terms: { apiKey: 'stray' } };
    const server = {
      incoming: {},
      outgoing: {},
      method: undefined,
      hostname: 'localhost',
      port: 80,
      url: new URL('http://x/'),
    };
    for (const context of [route, server, null, 5]) {
      const response = await handler(graphqlRequest({ query: FIRST }), context);
      expect(await response.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });
    }
    expect(new Set(gateway.petApi.log.map(({ key }) => key))).toEqual(new Set(['demo-free']));
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

  test('says so, and logs it once, where a parser has read the body and kept it to itself', async () => {
    await using gateway = await startEmbedded();
    const partly = async (request: IncomingMessage) => {
      request.once('data', () => request.pause());
      await once(request, 'pause');
    };
    for (const read of [async (request: IncomingMessage) => void (await request.toArray()), partly]) {
      expect(await throughNode(gateway, read)).toMatchObject(BODY_TAKEN);
    }
    expect(gateway.logLines.filter(({ level }) => level >= 40)).toMatchObject([
      { msg: expect.stringContaining('read before petql') },
    ]);
  });

  test('takes an empty body for one, also where something waited for its end', async () => {
    await using gateway = await startEmbedded();
    await using server = await serve((request, response) => {
      void request.toArray().then(() => gateway.handle(request, response));
    });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${server.origin}/graphql`, { method: 'POST', headers });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] },
    ]);
  });

  test('keeps the headers that a framework has set before', async () => {
    await using gateway = await startEmbedded();
    await using server = await serve((request, response) => {
      response.setHeader('vary', ['Origin', 'Accept-Encoding']).setHeader('set-cookie', ['a=1', 'b=2']);
      response.setHeader('access-control-allow-origin', 'https://app.example').setHeader('x-request-id', 'of-the-app');
      response.setHeader('content-security-policy', "default-src 'self'").setHeader('x-frame-options', 'SAMEORIGIN');
      gateway.handle(request, response);
    });
    const { headers } = await post(`${server.origin}/graphql`, FIRST);
    expect(Object.fromEntries(headers)).toMatchObject({
      vary: 'Origin, Accept-Encoding, Authorization',
      'access-control-allow-origin': 'https://app.example',
      'content-security-policy': "default-src 'self'",
      'x-frame-options': 'SAMEORIGIN',
      'x-content-type-options': 'nosniff',
    });
    expect(headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(headers.get('x-request-id')).toBe('of-the-app');
    expect(gateway.logLines.find(({ msg }) => msg === 'operation')).toMatchObject({ id: 'of-the-app' });
    // The page has a policy of its own, without which it shows nothing.
    const page = await fetch(`${server.origin}/graphql`, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
  });

  test("at a framework's root leaves all other paths to the routes behind it", async () => {
    await using gateway = await startEmbedded();
    await using server = await serve((request, response) => {
      gateway.handle(request, response, () => response.writeHead(200).end(`other ${request.url}`));
    });
    const textOf = async (path: string, init?: RequestInit) => (await fetch(server.origin + path, init)).text();
    const form = { method: 'POST', body: 'a=1' };
    for (const path of ['/', '/pets', '/graphqlx', '/health', '/?query={__typename}']) {
      expect(await textOf(path)).toBe(`other ${path}`);
    }
    expect(await textOf('/form', form)).toBe('other /form');
    expect((await fetch(`${server.origin}/health/ready`)).status).toBe(200);
    expect(await textOf('/graphql/nothing')).toContain('GraphQL is at /graphql');
    expect(await post(`${server.origin}/graphql`, FIRST)).toMatchObject({ data: { pets: [{ id: '1' }] } });
  });
});

test('a framework that waits for its next route gets what that returns, and what it throws', async () => {
  await using gateway = await startEmbedded();
  const { promise: passed, resolve } = Promise.withResolvers<unknown>();
  await using server = await serve((request, response) => {
    const returned = gateway.handle(request, response, () => Promise.reject(new Error('of the next route')));
    resolve(Promise.resolve(returned).catch(({ message }: Error) => message));
    response.end();
  });
  await fetch(`${server.origin}/pets`);
  expect(await passed).toBe('of the next route');
});

describe('a path that a framework rewrote', () => {
  /** As Express does: `originalUrl` is what came, and `baseUrl` what it cut off. */
  async function serveRewritten({ handle }: Gateway, rewrite: (url: string) => { url: string; baseUrl: string }) {
    return serve((request, response) => {
      const originalUrl = request.url ?? '';
      const rewritten = Object.assign(request, { originalUrl, ...rewrite(originalUrl) });
      handle(rewritten, response, () => response.end(`other ${request.url}`));
    });
  }

  test('as the page of an app is left to the routes behind petql', async () => {
    await using gateway = await startEmbedded();
    await using server = await serveRewritten(gateway, () => ({ url: '/index.html', baseUrl: '' }));
    expect(await (await fetch(`${server.origin}/pets/1`)).text()).toBe('other /index.html');
  });

  test('to the endpoint is the endpoint', async () => {
    await using gateway = await startEmbedded();
    await using server = await serveRewritten(gateway, () => ({ url: '/graphql', baseUrl: '' }));
    expect(await post(`${server.origin}/old`, FIRST)).toMatchObject({ data: { pets: [{ id: '1' }] } });
  });

  test('by the path at which petql is mounted is the whole one', async () => {
    await using gateway = await startEmbedded();
    await using server = await serveRewritten(gateway, (url) => ({
      url: url.replace(/^\/graphql(?!\/)/, '/').replace(/^\/graphql\//, '/'),
      baseUrl: '/graphql',
    }));
    expect(await post(`${server.origin}/graphql`, FIRST)).toMatchObject({ data: { pets: [{ id: '1' }] } });
    expect(await (await fetch(`${server.origin}/graphql/nothing`)).text()).toContain('GraphQL is at /graphql');
  });
});

describe('a path that was cut off', () => {
  test('is no redirect to it: the root of fetch says where GraphQL is', async () => {
    await using gateway = await startEmbedded();
    const response = await gateway.fetch(new Request('http://localhost/', { headers: { accept: 'text/html' } }));
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('GraphQL is at /graphql')]);
  });

  test('by a proxy before a server of petql ends there too', async () => {
    await using gateway = await startEmbedded();
    await using server = await serve((request, response) => {
      request.url = (request.url ?? '').replace(/^\/graphql/, '').replace(/^(?!\/)/, '/');
      gateway.handle(request, response);
    });
    const response = await fetch(`${server.origin}/graphql`, { headers: { accept: 'text/html' } });
    expect([response.redirected, response.status]).toEqual([true, 404]);
    await using whole = await serve(gateway.handle);
    const page = await fetch(whole.origin, { headers: { accept: 'text/html' } });
    expect([new URL(page.url).pathname, page.status]).toEqual(['/graphql', 200]);
  });
});

test('a Request whose body was used, or is being read, says so', async () => {
  await using gateway = await startEmbedded();
  const used = graphqlRequest({ query: FIRST });
  await used.text();
  const locked = graphqlRequest({ query: FIRST });
  locked.body?.getReader();
  for (const request of [used, locked]) {
    const response = await gateway.fetch(request);
    expect({ status: response.status, body: await response.json() }).toMatchObject(BODY_TAKEN);
  }
  const copy = graphqlRequest({ query: FIRST });
  await copy.clone().text();
  expect((await gateway.fetch(copy)).status).toBe(200);
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
