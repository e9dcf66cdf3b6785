import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { withHostCheck } from '../../src/server/http/host-check.ts';
import { startBrowser } from '../support/browser.ts';
import { serve } from '../support/serve.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const PETS = '/graphql?query=' + encodeURIComponent('{ pets { id } }');
let gateway: TestGateway;

afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
});

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<string> {
  gateway = await startGateway(options);
  return new URL(gateway.endpoint).origin;
}

describe('every answer', () => {
  test.each(['/graphql', '/health/live', '/health/ready', '/nothing', PETS])(
    'lets browsers guess, frame and run nothing: %s',
    async (path) => {
      const { headers } = await fetch((await start()) + path);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('access-control-allow-origin')).toBeNull();
    },
  );
});

describe('pages of other origins', () => {
  /** Those of Apollo Client and of Sentry among them. */
  const ASKED_HEADERS = 'apollographql-client-name,authorization,baggage,content-type,petql-dry-run,sentry-trace';
  const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': ASKED_HEADERS };
  const ask = (origin: string, url: string, init: RequestInit = {}) =>
    fetch(url, { ...init, headers: { origin, ...(init.headers as Record<string, string>) } });

  test('get nothing by default', async () => {
    await start();
    const answer = await ask('https://a.example', gateway.endpoint, { method: 'OPTIONS', headers: preflight });
    expect(answer.status).toBe(204);
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('are logged once for each refused origin, with the flag that allows it', async () => {
    const origin = await start({ gateway: { corsOrigins: ['https://a.example'] } });
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: '{"query":"{ __typename }"}' };
    await ask('https://b.example', gateway.endpoint, { method: 'OPTIONS', headers: preflight });
    await ask('https://b.example', gateway.endpoint, init);
    await ask('https://c.example', gateway.endpoint, init);
    for (const allowed of ['https://a.example', origin]) await ask(allowed, gateway.endpoint, init);
    const own = { ...headers, 'sec-fetch-site': 'same-origin' };
    await ask('https://behind-a-proxy.example', gateway.endpoint, { ...init, headers: own });
    const refusals = gateway.logLines.filter(({ level }) => level === 40);
    expect(refusals.map((line) => line['origin'])).toEqual(['https://b.example', 'https://c.example']);
    expect(refusals[0]?.['msg']).toContain('--cors-origins');
  });

  test('are not logged where a framework may have allowed them: no preflight comes as far as petql', async () => {
    await start();
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"query":"{ __typename }"}',
    };
    await ask('https://a.example', gateway.endpoint, init);
    expect(gateway.logLines.filter((line) => line['origin'])).toEqual([]);
  });

  test('are logged for a hundred origins at most', async () => {
    await start();
    for (let index = 0; index < 110; index += 1) {
      await ask(`https://a${index}.example`, gateway.endpoint, { method: 'OPTIONS', headers: preflight });
    }
    expect(gateway.logLines.filter((line) => line['origin'])).toHaveLength(100);
  });

  test('may be named with a slash at the end', async () => {
    await start({ gateway: { corsOrigins: ['https://a.example/'] } });
    const answer = await ask('https://a.example', `${gateway.endpoint}?query={__typename}`);
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://a.example');
  });

  test.each([
    ['capacitor://localhost', 'capacitor://localhost'],
    ['tauri://localhost', 'tauri://localhost'],
    ['chrome-extension://abcdefgh', 'chrome-extension://abcdefgh'],
    ['altair://-', 'altair://-'],
    ['app://.', 'app://.'],
    ['app://obsidian.md/', 'app://obsidian.md'],
    ['Ionic://LocalHost', 'ionic://localhost'],
    ['file://', 'file://'],
    ['null', 'null'],
    ['http://LOCALHOST:5173', 'http://localhost:5173'],
    ['HTTPS://App.Example:443', 'https://app.example'],
    ['https://münchen.example', 'https://xn--mnchen-3ya.example'],
    ['http://[0:0:0:0:0:0:0:1]:80/', 'http://[::1]'],
  ])('may be named as %s, which clients send as %s', async (name, origin) => {
    await start({ gateway: { corsOrigins: ['https://a.example', name] } });
    for (const method of ['OPTIONS', 'POST']) {
      const body = method === 'POST' ? '{"query":"{ __typename }"}' : null;
      const headers = { ...preflight, 'content-type': 'application/json' };
      const answer = await ask(origin, gateway.endpoint, { method, headers, body });
      expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
      const other = await ask('https://b.example', gateway.endpoint, { method, headers, body });
      expect(other.headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  test.each([
    'a.example',
    'localhost:5173',
    'https://a.example/path',
    'https://a.example?query',
    'https://u@a.example',
    'https://*.example',
    'capacitor://*',
    'capacitor://',
    'tauri:localhost',
    'https://a.example:99999',
    '',
    'none',
  ])('cannot be named as %j', (origin) => {
    const options = { petApiUrl: 'http://127.0.0.1:9/v1', corsOrigins: [origin] };
    expect(() => createGateway(options)).toThrow(/corsOrigins must be origins such as/);
  });

  test('are logged as they came, and with what is no origin as malformed', async () => {
    await start();
    const sent = [
      'capacitor://localhost',
      'tauri://localhost',
      'null',
      'HTTPS://B.example',
      'no origin',
      'x'.repeat(9_000),
    ];
    for (const origin of sent) await ask(origin, gateway.endpoint, { method: 'OPTIONS', headers: preflight });
    const logged = gateway.logLines.map((line) => line['origin']).filter(Boolean);
    expect(logged).toEqual([...sent.slice(0, 4), 'malformed']);
  });

  test('get responses where their origin is named, and others do not', async () => {
    await start({ gateway: { corsOrigins: ['https://a.example', 'https://b.example:8443'] } });
    const init = { method: 'OPTIONS', headers: preflight };
    const good = await ask('https://b.example:8443', gateway.endpoint, init);
    expect(good.status).toBe(204);
    expect(good.headers.get('access-control-allow-origin')).toBe('https://b.example:8443');
    expect(good.headers.get('access-control-allow-headers')).toBe(ASKED_HEADERS);
    expect(good.headers.get('access-control-allow-credentials')).toBeNull();
    const bad = await ask('https://a.example.evil', gateway.endpoint, init);
    expect(bad.headers.get('access-control-allow-origin')).toBeNull();
    expect(bad.headers.get('access-control-allow-headers')).toBeNull();
    for (const { headers } of [good, bad]) expect(headers.get('vary')).toContain('Origin');
  });

  test('see errors and their headers too', async () => {
    await start({ gateway: { corsOrigins: ['https://a.example'] } });
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify({ query: '{ pets { id } }' }) };
    const answer = await ask('https://a.example', gateway.endpoint, init);
    expect(answer.status).toBe(401);
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://a.example');
    const exposed = answer.headers.get('access-control-expose-headers')?.split(', ');
    const names = ['age', 'ratelimit', 'ratelimit-policy', 'retry-after', 'x-ratelimit-remaining', 'x-request-id'];
    expect(exposed).toEqual(expect.arrayContaining(names));
    expect(answer.headers.get('vary')).toMatch(/Authorization.*Origin|Origin.*Authorization/);
  });

  describe('may read whatever petql answers them', () => {
    const POST = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"query":"{ __typename }"}',
    };
    const ANSWERS: [what: string, path: string, status: number, init?: RequestInit][] = [
      ['health', '/health/live', 200],
      ['readiness', '/health/ready', 200],
      ['a POST to health', '/health/live', 405, { method: 'POST' }],
      ['the root', '/', 404],
      ['a path of nothing', '/nope', 404, POST],
      ['a path below the endpoint', '/graphql/nope', 404, POST],
      ['an older path of GraphiQL', '/graphql/graphiql/0/graphiql.js', 404],
      ['the endpoint with a slash', '/graphql/', 200, POST],
      ['a method that GraphQL has not', '/graphql', 405, { method: 'PUT', body: '{}' }],
      ['no acceptable type', '/graphql', 406, { ...POST, headers: { ...POST.headers, accept: 'image/png' } }],
      ['a long body', '/graphql', 413, { ...POST, body: ' '.repeat(70_000) }],
      ['a body of another type', '/graphql', 415, { ...POST, headers: { 'content-type': 'text/plain' } }],
    ];

    test.each(ANSWERS)('%s, and its preflight', async (_what, path, status, init = {}) => {
      const base = await start({ gateway: { corsOrigins: ['https://a.example'] } });
      const asked = await ask('https://a.example', base + path, { method: 'OPTIONS', headers: preflight });
      expect([asked.status, asked.headers.get('access-control-allow-headers')]).toEqual([204, ASKED_HEADERS]);
      expect(asked.headers.get('access-control-allow-methods')).toContain('POST');
      const answer = await ask('https://a.example', base + path, init);
      expect(answer.status).toBe(status);
      expect(answer.headers.get('access-control-expose-headers')).toContain('x-request-id');

      for (const { headers } of [asked, answer]) {
        expect(headers.get('access-control-allow-origin')).toBe('https://a.example');
        expect(headers.get('vary')).toContain('Origin');
      }
      const other = await ask('https://b.example', base + path, init);
      expect([other.status, other.headers.get('access-control-allow-origin')]).toEqual([status, null]);
    });

    test('data from the cache, each origin with its own name', async () => {
      await start({ gateway: { corsOrigins: ['https://a.example', 'https://b.example'] } });
      const headers = { ...POST.headers, authorization: 'Bearer demo-free' };
      const init = { method: 'POST', headers, body: '{"query":"{ pets(limit: 1) { id } }"}' };
      for (const origin of ['https://a.example', 'https://b.example', 'https://a.example']) {
        const answer = await ask(origin, gateway.endpoint, init);
        expect(answer.headers.get('access-control-allow-origin')).toBe(origin);
      }
      expect(gateway.petApi.log).toHaveLength(1);
    });

    test('a wrong name of petql', async () => {
      const settings = { allowedHosts: [], corsOrigins: ['https://a.example'] };
      await using served = await serve(withHostCheck((_, response) => response.end(), settings));
      const { port } = new URL(served.origin);
      const asked = { host: 'petql.example', origin: 'https://a.example' };
      const statuses = await Promise.all(
        ['OPTIONS', 'POST'].map(async (method) => {
          const sent = request({ port, method, headers: asked }).end();
          const [response] = (await once(sent, 'response')) as [IncomingMessage];
          response.resume();
          return [response.statusCode, response.headers['access-control-allow-origin']];
        }),
      );
      expect(statuses).toEqual([
        [204, 'https://a.example'],
        [421, 'https://a.example'],
      ]);
    });
  });

  test('get responses where any origin may', async () => {
    await start({ gateway: { corsOrigins: ['*'] } });
    const answer = await ask('https://a.example', `${gateway.endpoint}?query={__typename}`);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  });

  test('in a browser, a named origin reads the response, and another does not', async ({ skip }) => {
    const browser = await startBrowser();
    await using pages = await serve((_, response) => response.setHeader('content-type', 'text/html').end('<p>page'));
    try {
      await start({ gateway: { corsOrigins: [pages.origin] } });
      if (!browser) return skip('no browser starts on this machine');
      const page = await browser.newPage();
      const asked = async (endpoint: string) => {
        await page.goto(pages.origin);
        return page.evaluate(async (url) => {
          try {
            const answer = await fetch(url, {
              method: 'POST',
              headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free', 'sentry-trace': '0' },
              body: JSON.stringify({ query: '{ pets(limit: 1) { id } }' }),
            });
            return [answer.headers.get('x-ratelimit-limit'), Object.keys((await answer.json()).data)];
          } catch {
            return 'nothing';
          }
        }, endpoint);
      };
      expect(await asked(gateway.endpoint)).toEqual(['60', ['pets']]);
      await using other = await startGateway();
      expect(await asked(other.endpoint)).toBe('nothing');
      expect(other.petApi.log).toHaveLength(0);
    } finally {
      await browser?.close();
    }
  });
});

describe("with the server's key only a POST is answered, since a page of another site can send a GET", () => {
  test.each<Record<string, string>>([
    {},
    { 'sec-fetch-site': 'cross-site' },
    { 'content-type': 'application/json', 'apollo-require-preflight': 'true' },
  ])('a GET with %j calls nothing', async (headers) => {
    const url = (await start({ gateway: { petApiKey: 'demo-free' } })) + PETS;
    const answer = await fetch(url, { headers });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    expect(await answer.json()).toMatchObject({ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
    expect(gateway.petApi.log).toHaveLength(0);
  });

  test('a GET is answered where callers bring their keys', async () => {
    const url = (await start()) + PETS;
    const headers = { authorization: 'Bearer demo-free', 'sec-fetch-site': 'cross-site' };
    expect((await fetch(url, { headers })).status).toBe(200);
  });

  test('a form or an image in a browser makes no call', async ({ skip }) => {
    const browser = await startBrowser();
    // With GraphiQL, a browser that goes to the endpoint sees that instead of an answer.
    const origin = await start({ gateway: { petApiKey: 'demo-free', graphiql: false } });
    const form = `<form action="${origin}/graphql"><input name="query" value="{pets{id}}"></form>`;
    await using pages = await serve((_, response) =>
      response.setHeader('content-type', 'text/html').end(`<img src="${origin}${PETS}">${form}`),
    );
    try {
      if (!browser) return skip('no browser starts on this machine');
      const page = await browser.newPage();
      // The image has come, or failed, by then.
      await page.goto(pages.origin);
      const answer = page.waitForResponse((response) => response.url().startsWith(origin));
      await page.evaluate(() => document.querySelector('form')?.submit());
      // Browsers that navigate accept HTML first, and get no JSON.
      expect((await answer).status()).toBeGreaterThanOrEqual(405);
      expect(gateway.petApi.log).toHaveLength(0);
    } finally {
      await browser?.close();
    }
  });
});

describe('the highest weight of Accept counts, on each page', () => {
  const HTML = 'text/html; charset=utf-8';
  const JSON_RESPONSE = expect.stringMatching(/^application\/.*json/);
  const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';

  test.each([
    [BROWSER, true],
    ['TEXT/HTML', true],
    ['text/*', true],
    ['application/json;q=0.5, text/html', true],
    ['text/html, application/json', true],
    ['application/json, text/html;q=0.5', false],
    ['application/json, */*', false],
    ['application/json, text/html;q=0', false],
    ['*/*', false],
    ['', false],
  ])('%s', async (accept, isPage) => {
    const base = await start({ gateway: { admin: true } });
    const typeOf = async (url: string, init: RequestInit = {}) => {
      const { status, headers } = await fetch(url, { ...init, headers: { accept, authorization: 'Bearer demo-free' } });
      return [status, headers.get('content-type')];
    };
    const page = [200, isPage ? HTML : JSON_RESPONSE];
    expect(await typeOf(base + PETS)).toEqual(page);
    expect(await typeOf(base + PETS.replace('?', '/?'))).toEqual(page);
    expect((await typeOf(`${base}/`, { redirect: 'manual' }))[0]).toBe(isPage ? 302 : 404);
    // People at a browser are whom it is for.
    const isJson = accept.startsWith('application/json,');
    expect((await typeOf(`${gateway.adminOrigin}/quota`))[1]).toBe(isJson ? 'application/json' : HTML);
  });
});

describe('switched off', () => {
  test('GraphiQL has no page, no files and no redirect', async () => {
    const origin = await start({ gateway: { graphiql: false } });
    const page = await fetch(`${origin}/graphql`, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type')).not.toContain('html');
    expect((await fetch(origin, { redirect: 'manual' })).status).toBe(404);
  });

  test('introspection is rejected, and errors suggest no names', async () => {
    await start({ gateway: { introspection: false } });
    for (const query of ['{ __schema { queryType { name } } }', '{ __type(name: "Pet") { name } }']) {
      const { data, errors } = await gateway.query(query);
      expect(data).toBeUndefined();
      expect(errors?.[0]).toMatchObject({ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } });
    }
    const close = await gateway.query('query ($s: PetStatus) { pet { nam } pets(status: $s, limi: 3) { i } }');
    const value = await gateway.query('query ($s: PetStatus) { pets(status: $s) { id } }', { variables: { s: 'SOL' } });
    expect(JSON.stringify([close.errors, value.errors])).not.toMatch(/did you mean/i);
    expect(await gateway.query('{ __typename pets(limit: 1) { __typename } }')).not.toHaveProperty('errors');
  });

  test('HEAD is answered like GET, for GraphiQL and its files', async () => {
    const origin = await start();
    const headers = { accept: 'text/html' };
    const page = await (await fetch(`${origin}/graphql`, { headers })).text();
    const script = /<script src="([^"]+)"/.exec(page)?.[1] ?? '';
    for (const path of ['/graphql', script]) {
      const answer = await fetch(new URL(path, `${origin}/graphql`), { method: 'HEAD', headers });
      expect([answer.status, await answer.text()]).toEqual([200, '']);
      expect(Number(answer.headers.get('content-length'))).toBeGreaterThan(500);
    }
  });

  test('neither is off by default', async () => {
    const origin = await start();
    const page = await fetch(`${origin}/graphql`, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type')).toContain('text/html');
    expect((await gateway.query('{ __schema { queryType { name } } }')).errors).toBeUndefined();
    expect(JSON.stringify((await gateway.query('{ pets { nam } }')).errors)).toMatch(/did you mean/i);
  });
});
