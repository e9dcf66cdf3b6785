import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Browser } from 'playwright-core';
import type { GatewayOptions } from '../../src/index.ts';
import { startBrowser } from '../support/browser.ts';
import { slow } from '../support/pet-api/fault.ts';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { serve } from '../support/serve.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import type { TestPetApiOptions } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';
import { createBff } from './bff.ts';

const NAMES = ['Ada', '<img src=x onerror="document.title = 1"> & Söhne', '</li>&amp;'];
const SEEDS = petSeeds(NAMES.length, ['available']).map((pet, index) => ({ ...pet, name: NAMES[index] ?? '' }));
const KEY = 'demo-business';

let browser: Browser | undefined;

beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

async function startBff(petApi: TestPetApiOptions = {}, options: Partial<GatewayOptions> = {}) {
  const gateway = await startEmbedded({ petApiKey: KEY, ...options }, petApi);
  const server = await serve(createBff(gateway));
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
  });
  return { gateway, url: `${server.origin}/` };
}

test("the page lists the pets by their names, and nothing in it shows the server's key", async ({ skip }) => {
  const { gateway, url } = await startBff({ pets: SEEDS });
  const page = await (browser ?? skip()).newPage();
  const received: string[] = [];
  page.on('response', async (response) => {
    received.push(JSON.stringify([await response.allHeaders(), await response.text().catch(() => '')]));
  });
  await page.goto(url, { waitUntil: 'networkidle' });
  expect(await page.getByRole('heading').textContent()).toBe('Waiting for a home');
  expect(await page.getByRole('listitem').allTextContents()).toEqual(NAMES);
  expect(await page.title()).toBe('Waiting for a home');
  expect(received.join()).toContain('Ada');
  expect(received.join()).not.toContain(KEY);
  expect(gateway.petApi.log.map(({ key, path }) => [key, path.split('?')[0]])).toEqual([[KEY, '/pets']]);
});

test("a visitor's Authorization header is not forwarded", async () => {
  const { gateway, url } = await startBff();
  expect((await fetch(url, { headers: { authorization: 'Bearer demo-free' } })).status).toBe(200);
  expect(gateway.petApi.log.map(({ key }) => key)).toEqual([KEY]);
});

test('a visitor who leaves while the page waits for the quota costs no call', async () => {
  const { gateway, url } = await startBff();
  gateway.petApi.fault = slow(300);
  const first = gateway.execute({ document: '{ pet(id: "1") { id } }' });
  await until(() => gateway.petApi.log.length > 0);
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
  expect((await first).errors).toBeUndefined();
  expect(gateway.petApi.log).toHaveLength(1);
});

test('an exhausted quota is a page that says when to come back', async () => {
  const keys = { [KEY]: { perMinute: 1, perDay: 1 } };
  const { gateway, url } = await startBff({ keys }, { maxAgeMs: 0, maxStaleMs: 0 });
  expect((await fetch(url)).status).toBe(200);
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([503, expect.stringContaining('Back soon')]);
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(gateway.petApi.log).toHaveLength(1);
});

test('an upstream that fails is a page that shows nothing of its response, and an unknown path is a 404', async () => {
  const { gateway, url } = await startBff();
  expect((await fetch(new URL('favicon.ico', url))).status).toBe(404);
  expect(gateway.petApi.log).toHaveLength(0);
  gateway.petApi.fault = { status: 500, body: '{"code":"oops","message":"a secret","status":500}' };
  const response = await fetch(url);
  expect([response.status, await response.text()]).toEqual([502, expect.not.stringContaining('secret')]);
});
