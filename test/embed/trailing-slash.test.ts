import { describe, expect, test } from 'vitest';
import { serve } from '../support/serve.ts';
import { startEmbedded } from '../support/start-gateway.ts';

const PAGE = 'https://app.example';
const HEADERS = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };
const BODY = JSON.stringify({ query: '{ pets(limit: 1) { id } }' });

// Next.js with `trailingSlash`, nginx and Rails redirect every path to one with a slash at its end.
describe.each([
  ['/graphql/', undefined],
  ['/api/graphql/', '/api/graphql'],
  ['/api/graphql/', '/api/graphql/'],
  ['/api/graphql', '/api/graphql/'],
])('%s is served with the endpoint %s', (path, endpoint) => {
  test.each(['fetch', 'handle'] as const)('by %s: GraphQL by POST and GET, preflights and GraphiQL', async (by) => {
    await using gateway = await startEmbedded({ ...(endpoint !== undefined && { endpoint }), corsOrigins: [PAGE] });
    await using server = await serve(gateway.handle);
    const send = (target: string | URL, init: RequestInit = {}) =>
      by === 'fetch' ? gateway.fetch(target, init) : fetch(new URL(target, server.origin), init);

    const statuses: (string | null)[] = [];
    for (const body of [BODY, BODY]) {
      const response = await send(path, { method: 'POST', headers: HEADERS, body });
      expect([response.status, await response.json()]).toMatchObject([200, { data: { pets: [{ id: '1' }] } }]);
      statuses.push(response.headers.get('cache-status'));
    }
    expect(statuses[1]).toMatch(/hit/);
    const read = await send(`${path}?query={__typename}`, { headers: HEADERS });
    expect([read.status, await read.json()]).toMatchObject([200, { data: { __typename: 'Query' } }]);
    const asked = { origin: PAGE, 'access-control-request-method': 'POST' };
    const preflight = await send(path, { method: 'OPTIONS', headers: asked });
    expect(preflight.headers.get('access-control-allow-origin')).toBe(PAGE);

    const page = await (await send(path, { headers: { accept: 'text/html' } })).text();
    const script = /<script src="([^"]+)"/.exec(page)?.[1] ?? 'none';
    const { pathname } = new URL(script, `http://localhost${path}`);
    const loaded = await send(pathname);
    expect([loaded.status, loaded.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
  });
});

test.each(['/graphql//', '/graphql/x/', '/graphqlx/', '//graphql/'])('%s is no endpoint', async (path) => {
  await using gateway = await startEmbedded();
  const response = await gateway.fetch(`http://localhost${path}`, { method: 'POST', headers: HEADERS, body: BODY });
  expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('GraphQL is at /graphql')]);
});
