import { afterEach, describe, expect, test } from 'vitest';
import { PREFLIGHTED_HEADERS } from '../../src/server/forged-request.ts';
import { listen } from '../../src/server/listener.ts';
import { startBrowser } from '../support/browser.ts';
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
    'tells browsers to guess, frame and run nothing: %s',
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
  const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' };
  const ask = (origin: string, url: string, init: RequestInit = {}) =>
    fetch(url, { ...init, headers: { origin, ...(init.headers as Record<string, string>) } });

  test('may not ask where nothing is said of them', async () => {
    await start();
    const answer = await ask('https://a.example', gateway.endpoint, { method: 'OPTIONS', headers: preflight });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('may ask where their origin is named, and others still may not', async () => {
    await start({ gateway: { corsOrigins: ['https://a.example', 'https://b.example:8443'] } });
    const init = { method: 'OPTIONS', headers: preflight };
    const good = await ask('https://b.example:8443', gateway.endpoint, init);
    expect(good.status).toBe(204);
    expect(good.headers.get('access-control-allow-origin')).toBe('https://b.example:8443');
    const allowed = good.headers.get('access-control-allow-headers')?.split(', ');
    expect(allowed).toEqual(expect.arrayContaining(['authorization', ...PREFLIGHTED_HEADERS]));
    expect(good.headers.get('access-control-allow-credentials')).toBeNull();
    const bad = await ask('https://a.example.evil', gateway.endpoint, init);
    expect(bad.headers.get('access-control-allow-origin')).toBeNull();
    for (const { headers } of [good, bad]) expect(headers.get('vary')).toContain('Origin');
  });

  test('see the answers of all that they may ask, errors and their headers among them', async () => {
    await start({ gateway: { corsOrigins: ['https://a.example'] } });
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify({ query: '{ pets { id } }' }) };
    const answer = await ask('https://a.example', gateway.endpoint, init);
    expect(answer.status).toBe(401);
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://a.example');
    expect(answer.headers.get('access-control-expose-headers')).toContain('retry-after');
    expect(answer.headers.get('vary')).toMatch(/Authorization.*Origin|Origin.*Authorization/);
  });

  test('may all ask where any may', async () => {
    await start({ gateway: { corsOrigins: ['*'] } });
    const answer = await ask('https://a.example', `${gateway.endpoint}?query={__typename}`);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  });

  test('in a real browser, one that is named reads the answer, and one that is not cannot', async ({ skip }) => {
    const browser = await startBrowser();
    const pages = await listen((_, response) => response.setHeader('content-type', 'text/html').end('<p>page'), {
      host: '127.0.0.1',
      port: 0,
    });
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
              headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' },
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
      expect(other.sandbox.calls).toHaveLength(0);
    } finally {
      await browser?.close();
      await pages.stop(0);
    }
  });
});

describe("a GET that a page of another site could have sent, with the server's key", () => {
  const status = async (headers: Record<string, string>) => {
    const url = (await start({ gateway: { petApiKey: 'demo-free' } })) + PETS;
    return (await fetch(url, { headers })).status;
  };

  test.each<Record<string, string>>([
    {},
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'content-type': 'text/plain', authorization: 'Basic dTpw' },
  ])('is refused, and calls nothing: %j', async (headers) => {
    expect(await status(headers)).toBe(403);
    expect(gateway.sandbox.calls).toHaveLength(0);
  });

  test.each<Record<string, string>>([
    { 'apollo-require-preflight': 'true' },
    { 'content-type': 'application/json' },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
  ])('is answered where none could: %j', async (headers) => {
    expect(await status(headers)).toBe(200);
  });

  test('is answered where callers bring their keys, since no page has those', async () => {
    const url = (await start()) + PETS;
    const headers = { authorization: 'Bearer demo-free', 'sec-fetch-site': 'cross-site' };
    expect((await fetch(url, { headers })).status).toBe(200);
  });

  test('from a form or an image in a real browser spends nothing', async ({ skip }) => {
    const browser = await startBrowser();
    // With GraphiQL, a browser that goes to the endpoint sees that instead of an answer.
    const origin = await start({ gateway: { petApiKey: 'demo-free', graphiql: false } });
    const form = `<form action="${origin}/graphql"><input name="query" value="{pets{id}}"></form>`;
    const pages = await listen(
      (_, response) => response.setHeader('content-type', 'text/html').end(`<img src="${origin}${PETS}">${form}`),
      { host: '127.0.0.1', port: 0 },
    );
    try {
      if (!browser) return skip('no browser starts on this machine');
      const page = await browser.newPage();
      // The image has come, or failed, by then.
      await page.goto(pages.origin);
      const answer = page.waitForResponse((response) => response.url().startsWith(origin));
      await page.evaluate(() => document.querySelector('form')?.submit());
      expect((await answer).status()).toBe(403);
      expect(gateway.sandbox.calls).toHaveLength(0);
    } finally {
      await browser?.close();
      await pages.stop(0);
    }
  });
});

test('a page that may ask gets its answer to a GET with the header that petql names, in a real browser', async ({
  skip,
}) => {
  const browser = await startBrowser();
  const pages = await listen((_, response) => response.setHeader('content-type', 'text/html').end('<p>'), {
    host: '127.0.0.1',
    port: 0,
  });
  const origin = await start({ gateway: { petApiKey: 'demo-free', corsOrigins: [pages.origin] } });
  try {
    if (!browser) return skip('no browser starts on this machine');
    const page = await browser.newPage();
    await page.goto(pages.origin);
    const status = await page.evaluate(async (url) => {
      const answer = await fetch(url, { headers: { 'apollo-require-preflight': 'true' } });
      return answer.status;
    }, origin + PETS);
    expect(status).toBe(200);
  } finally {
    await browser?.close();
    await pages.stop(0);
  }
});

describe('what can be switched off', () => {
  test('GraphiQL: browsers get no page, no file of it and no way to it', async () => {
    const origin = await start({ gateway: { graphiql: false } });
    const page = await fetch(`${origin}/graphql`, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type')).not.toContain('html');
    expect((await fetch(origin, { redirect: 'manual' })).status).toBe(404);
  });

  test('introspection: the schema cannot be asked for, and errors suggest none of its names', async () => {
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

  test('neither is switched off by itself', async () => {
    const origin = await start();
    const page = await fetch(`${origin}/graphql`, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type')).toContain('text/html');
    expect((await gateway.query('{ __schema { queryType { name } } }')).errors).toBeUndefined();
    expect(JSON.stringify((await gateway.query('{ pets { nam } }')).errors)).toMatch(/did you mean/i);
  });
});
