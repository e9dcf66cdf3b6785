import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Browser } from 'playwright-core';
import type { GatewayOptions } from '../../src/index.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { startBrowser } from '../support/browser.ts';
import { petSeeds } from '../support/pet-seeds.ts';
import { serve } from '../support/serve.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import { createBff } from './bff.ts';

const NAMES = ['Ada', '<img src=x onerror="document.title = 1"> & Söhne', '</li>&amp;'];
const SEEDS = petSeeds(NAMES.length, ['available']).map((pet, index) => ({ ...pet, name: NAMES[index] ?? '' }));
const KEY = 'demo-business';

async function startBff(sandboxOptions: SandboxOptions = {}, options: Partial<GatewayOptions> = {}) {
  const gateway = await startEmbedded({ petApiKey: KEY, ...options }, sandboxOptions);
  const server = await serve(createBff(gateway));
  return {
    gateway,
    url: `${server.origin}/`,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

describe('in a browser', () => {
  let browser: Browser | undefined;

  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());

  test("the page lists the pets by their names, and nothing in it shows the server's key", async ({ skip }) => {
    if (!browser) return skip();
    await using bff = await startBff({ seeds: SEEDS });
    const visit = await browser.newPage();
    const received: string[] = [];
    visit.on('response', async (response) => {
      received.push(JSON.stringify([await response.allHeaders(), await response.text().catch(() => '')]));
    });
    await visit.goto(bff.url, { waitUntil: 'networkidle' });
    expect(await visit.getByRole('heading').textContent()).toBe('Waiting for a home');
    expect(await visit.getByRole('listitem').allTextContents()).toEqual(NAMES);
    expect(await visit.title()).toBe('Waiting for a home');
    expect(received.join()).toContain('Ada');
    expect(received.join()).not.toContain(KEY);
    expect(bff.gateway.sandbox.calls.map(({ key, path }) => [key, path.split('?')[0]])).toEqual([[KEY, '/pets']]);
    await visit.close();
  });
});

test("a visitor's own Authorization header is not forwarded", async () => {
  await using bff = await startBff();
  expect((await fetch(bff.url, { headers: { authorization: 'Bearer demo-free' } })).status).toBe(200);
  expect(bff.gateway.sandbox.calls.map(({ key }) => key)).toEqual([KEY]);
});

test('a visitor who leaves while the page waits for the quota costs no call', async () => {
  await using bff = await startBff();
  const { gateway, url } = bff;
  const probeIsThere = new Promise<void>((resolve) => {
    gateway.sandbox.setFault(() => {
      resolve();
      return { delayMs: 300 };
    });
  });
  const probe = gateway.execute({ document: '{ pet(id: "1") { id } }' });
  await probeIsThere;
  const visitor = new AbortController();
  const gone = fetch(url, { signal: visitor.signal }).catch(() => 'gone');
  const queued = async () => {
    const { data } = await gateway.execute<{ rateLimit: { queued: number } }>({ document: '{ rateLimit { queued } }' });
    return data?.rateLimit.queued;
  };
  await expect.poll(queued).toBe(1);
  visitor.abort();
  expect(await gone).toBe('gone');
  await expect.poll(queued).toBe(0);
  expect((await probe).errors).toBeUndefined();
  expect(gateway.sandbox.calls).toHaveLength(1);
});

test('an exhausted quota is a page that says when to come back', async () => {
  const keys = { [KEY]: { name: 'small', perMinute: 1, perDay: 1 } };
  await using bff = await startBff({ keys }, { maxAgeMs: 0, maxStaleMs: 0 });
  expect((await fetch(bff.url)).status).toBe(200);
  const response = await fetch(bff.url);
  expect([response.status, await response.text()]).toEqual([503, expect.stringContaining('Back soon')]);
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(bff.gateway.sandbox.calls).toHaveLength(1);
});

test('an upstream that fails is a page that shows nothing of its response', async () => {
  await using bff = await startBff();
  bff.gateway.sandbox.setFault(() => ({ status: 500, body: '{"code":"oops","message":"a secret","status":500}' }));
  const response = await fetch(bff.url);
  expect([response.status, await response.text()]).toEqual([502, expect.not.stringContaining('secret')]);
});

test('an unknown path is a 404', async () => {
  await using bff = await startBff();
  expect((await fetch(new URL('favicon.ico', bff.url))).status).toBe(404);
  expect(bff.gateway.sandbox.calls).toHaveLength(0);
});
