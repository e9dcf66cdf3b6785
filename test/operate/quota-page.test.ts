import type { Route } from 'playwright-core';
import { expect, test } from 'vitest';
import { violationsOf } from '../support/axe.ts';
import { startBrowser } from '../support/browser.ts';
import { tooMany } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';

test('in a real browser the page shows each caller as it calls, from petql alone, and fits a phone', async ({
  skip,
}) => {
  const browser = await startBrowser();
  if (!browser) return skip('no browser starts on this machine');
  try {
    await using gateway = await startGateway({ gateway: { admin: true } });
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', ({ message }) => complaints.push(message));
    page.on('request', (request) => request.url().startsWith(gateway.adminOrigin) || complaints.push(request.url()));
    await page.goto(`${gateway.adminOrigin}/quota`);
    await page.getByText('No calls yet.').waitFor();
    await gateway.query('{ pets { id } }');
    await page.getByText('1 of 1,000 used').waitFor();
    gateway.petApi.fault = tooMany(30);
    await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache', prefer: 'wait=1' } });
    await page.getByText(/paused until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(1);
    expect(await page.locator('tbody code').innerText()).toMatch(/^[\w-]{32}$/);
    expect(complaints).toEqual([]);
    const phone = await browser.newPage({ viewport: { width: 390, height: 844 } });
    const html = await (await fetch(`${gateway.adminOrigin}/quota`)).text();
    await phone.setContent(html);
    expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    const titles = await phone
      .locator('tbody th, td')
      .evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell, '::before').content.slice(1, -1)));
    expect(titles).toEqual(['Caller', 'Plan', 'Minute', 'Day', 'Queued', 'State', 'Calls made', 'Calls saved']);
  } finally {
    await browser.close();
  }
});

test('axe-core finds nothing, a selection stays, and hashes stand in one line', async ({ skip }) => {
  const browser = await startBrowser();
  if (!browser) return skip('no browser starts on this machine');
  try {
    await using gateway = await startGateway({ gateway: { admin: true } });
    await gateway.query('{ pets { id } }');
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [1_280, 390, 320]) {
        const page = await browser.newPage({ viewport: { width, height: 844 }, colorScheme });
        await page.goto(`${gateway.adminOrigin}/quota`);
        expect(await violationsOf(page)).toEqual([]);
        const { height = Infinity } = (await page.locator('tbody code').boundingBox()) ?? {};
        expect(height).toBeLessThan(width === 320 ? 48 : 24);
        await page.getByRole('meter', { name: 'Used this minute' }).waitFor();
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      }
    }

    const page = await browser.newPage();
    await page.goto(`${gateway.adminOrigin}/quota`);
    await page.locator('h1').evaluate((title) => getSelection()?.selectAllChildren(title));
    await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache' } });
    // The page asks every two seconds, and shows it once nothing is selected.
    await page.waitForTimeout(2_500);
    expect(await page.evaluate(() => String(getSelection()))).toBe('petql: quotas');
    expect(await page.locator('tbody').innerText()).toContain('1 of 1,000 used');
    await page.evaluate(() => getSelection()?.removeAllRanges());
    await page.getByText('2 of 1,000 used').waitFor();
  } finally {
    await browser.close();
  }
});

test('says since when there is no contact, asks once at a time, and can be held', async ({ skip }) => {
  const browser = await startBrowser();
  if (!browser) return skip('no browser starts on this machine');
  try {
    await using gateway = await startGateway({ gateway: { admin: true } });
    const page = await browser.newPage();
    await page.clock.install();
    await page.goto(`${gateway.adminOrigin}/quota`);
    const asked: Route[] = [];
    await page.route('**/quota', (route) => void asked.push(route));
    const lost = page.getByText(/^No contact with petql since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\./);

    // Petql hangs.
    await page.clock.runFor(4_500);
    await expect.poll(() => asked.length).toBe(1);
    expect(await lost.count()).toBe(0);
    await asked[0]?.abort();
    await lost.waitFor();
    await page.clock.runFor(2_100);
    await expect.poll(() => asked.length).toBe(2);
    await asked[1]?.continue();
    await lost.waitFor({ state: 'detached' });

    const hold = page.getByRole('button', { name: 'Hold this page' });
    await hold.click();
    await page.clock.runFor(10_000);
    expect([await hold.getAttribute('aria-pressed'), asked.length]).toEqual(['true', 2]);
  } finally {
    await browser.close();
  }
});

test('only GET is allowed, and only the metrics and the page exist', async () => {
  await using gateway = await startGateway({ gateway: { admin: true } });
  const status = async (path: string, method = 'GET') => (await fetch(gateway.adminOrigin + path, { method })).status;
  expect(await status('/quota')).toBe(200);
  expect(await status('/quota', 'POST')).toBe(405);
  expect(await status('/graphql')).toBe(404);
  const { headers } = await fetch(`${gateway.adminOrigin}/quota`);
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
});

test('a fault of petql is a 500, is in the log, and does not end the process', async () => {
  let isBroken = false;
  const unlessBroken = <T>(value: T): T => {
    if (isBroken) throw new Error('broken');
    return value;
  };
  const clock = { now: () => unlessBroken(Date.now()), elapsed: () => unlessBroken(performance.now()) };
  await using gateway = await startGateway({ gateway: { admin: true, clock } });
  await gateway.query('{ pets { id } }');
  const page = () => fetch(`${gateway.adminOrigin}/quota`);
  // After it, nothing of the query is left that would read the broken clock.
  expect((await page()).status).toBe(200);
  isBroken = true;
  expect((await page()).status).toBe(500);
  isBroken = false;
  expect((await page()).status).toBe(200);
  const line = gateway.logLines.find(({ level }) => level === 50);
  expect(line).toMatchObject({ err: { message: 'broken' }, msg: 'could not make an admin page' });
});

test('the page loads nothing else, so that frameworks can mount it below any path', async () => {
  await using gateway = await startGateway({ gateway: { admin: true } });
  for (const path of ['/quota', '/quota/']) {
    const html = await (await fetch(gateway.adminOrigin + path)).text();
    expect(html).not.toContain('http-equiv');
    expect([...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, address]) => address)).toEqual(['data:,']);
  }
});

test('the page says what this process has saved, and when and where figures hold', async () => {
  await using gateway = await startGateway({ gateway: { admin: true, maxAgeMs: 0 } });
  const page = async () => (await fetch(`${gateway.adminOrigin}/quota`)).text();
  await gateway.query('{ petsById(ids: ["1", "2", "3", "4"]) { id } }');
  gateway.petApi.fault = tooMany(30);
  const headers = { prefer: 'wait=0' };
  await gateway.query('{ pets(status: SOLD) { id } }', { headers });
  await gateway.query('{ pets(status: PENDING) { id } }', { headers });
  await gateway.query('{ pet(id: "1") { id } }', { headers });
  const figures = [...(await page()).matchAll(/<dt>([^<]*)<\/dt><dd>([^<]*)</g)].map(([, ...figure]) =>
    figure.join(': '),
  );
  expect(figures).toEqual([
    'calls made: 2',
    'calls saved: 4',
    'share saved: 66 %',
    'operations refused: 2',
    'stale responses: 1',
  ]);
  expect(await page()).toMatch(/resets <time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC<\/time>/);
  expect(await page()).toContain('Minute and day count the calls of all replicas');
});

test('the page shows the last hour by the minute, as charts and in words', async () => {
  let nowMs = Date.UTC(2026, 10, 21, 11, 59, 30);
  const clock = { now: () => nowMs, elapsed: () => performance.now() };
  await using gateway = await startGateway({ gateway: { admin: true, clock, maxAgeMs: 0 } });
  const charts = async () => {
    const html = await (await fetch(`${gateway.adminOrigin}/quota`)).text();
    const [, captions, bars] = [/$/g, /<figcaption>(.*?)<\/figcaption>/g, /<title>(.*? UTC: .*?)<\/title>/g].map(
      (one) => [...html.matchAll(one)].map(([, text]) => text?.replaceAll(/<.*?>/g, '')),
    );
    return { captions: captions?.slice(0, 3), bars };
  };
  await gateway.query('{ pets { id } }');
  nowMs += 60_000;
  await gateway.query('{ pets { id } petsById(ids: ["1", "2"]) { id } }');
  await gateway.query('{ pets { id } petsById(ids: ["1", "2"]) { id } }');
  gateway.petApi.fault = () => ({ status: 429, headers: { 'retry-after': '30' } });
  await gateway.query('{ pets(status: SOLD) { id } }', { headers: { prefer: 'wait=0' } });

  expect(await charts()).toEqual({
    captions: [
      'calls made: 4, at most 3 a minute',
      'calls saved: 4, at most 4 a minute',
      'operations refused: 1, at most 1 a minute',
    ],
    bars: ['11:59 UTC: 1', '12:00 UTC: 3', '12:00 UTC: 4', '12:00 UTC: 1'],
  });
  nowMs += 59 * 60_000;
  expect((await charts()).bars).toEqual(['12:00 UTC: 3', '12:00 UTC: 4', '12:00 UTC: 1']);
  nowMs += 60_000;
  expect(await charts()).toEqual({ captions: ['calls made: 0', 'calls saved: 0', 'operations refused: 0'], bars: [] });
});

test('the page says of a key whether it is active, exhausted or rejected', async () => {
  await using gateway = await startGateway({
    gateway: { admin: true, maxAgeMs: 0 },
    petApi: { keys: { small: { perMinute: 1, perDay: 50 }, large: { perMinute: 60, perDay: 1_000 } } },
  });
  const ask = (key: string) => gateway.query('{ pets { id } }', { headers: { authorization: `Bearer ${key}` } });
  const states = async () => {
    const html = await (await fetch(`${gateway.adminOrigin}/quota`)).text();
    return [...html.matchAll(/data-title="State">(?:<strong>)?([^<]*)</g)].map(([, state = '']) => state).toSorted();
  };
  await Promise.all(['small', 'large'].map(ask));
  expect(await states()).toEqual(['active', 'exhausted']);
  gateway.petApi.fault = ({ key }) => (key === 'large' ? { status: 401 } : undefined);
  await ask('large');
  expect(await states()).toEqual(['exhausted', 'rejected']);
});

test('rows keep their places when callers call again', async () => {
  await using gateway = await startGateway({ gateway: { admin: true } });
  const names = async () => {
    const html = await (await fetch(`${gateway.adminOrigin}/quota`)).text();
    return [...html.matchAll(/<code>([^<]*)</g)].map(([, name]) => name);
  };
  const call = (key: string) => gateway.query('{ pets { id } }', { headers: { authorization: `Bearer demo-${key}` } });
  await call('free');
  await call('pro');
  await call('business');
  const before = await names();
  await call('free');
  expect(await names()).toEqual(before);
  await call('pro');
  expect(await names()).toEqual(before);
  expect(before).toHaveLength(3);
});
