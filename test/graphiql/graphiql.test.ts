import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isObjectType } from 'graphql';
import type { Browser, Locator, Route } from 'playwright-core';
import { afterAll, afterEach, assert, beforeAll, beforeEach, expect, test } from 'vitest';
import { schema } from '../../src/schema/schema.ts';
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import { BAD_DAYS } from '../../src/graphiql/bad-days.ts';
import { violationsOf } from '../support/axe.ts';
import { startBrowser } from '../support/browser.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import {
  PATIENCE,
  boxOf,
  costOf,
  expectCost,
  editor,
  execute,
  executeTo,
  loadedBytes,
  openTab,
  openTabIsStored,
  openWatchedPage,
  shows,
  tabNames,
  textOf,
} from './graphiql-page.ts';
import type { WatchedPage } from './graphiql-page.ts';

/** GraphiQL's script, style and editor workers. */
const ASSETS = ['editorWorkerService.js', 'graphiql.css', 'graphiql.js', 'graphql.js', 'json.js'];
const TABS = ['ListPets', 'ThirtyPets', 'CompareStatuses', 'CreatePet', 'Quota', 'DryRun'];
const BAD_TABS = BAD_DAYS.map(({ query }) => /^(?:query|mutation) (\w+)/m.exec(query)?.[1] ?? '');
const figures = (petql: object) => ({ data: {}, extensions: { petql } });
/** On the same day, wherever the test runs. */
const SOON = new Date(new Date().setHours(23, 59, 58, 0));
/** The line under the result for what a response holds. */
const LINES: readonly (readonly [string, object, Record<string, string>?])[] = [
  [
    '1 call · 29 saved · fresh · 3 of 60 used this minute, 14 of 1,000 today',
    figures({ upstreamCalls: 1, savedCalls: 29, oldestAgeMs: 7 }),
    { ratelimit: '"minute";r=57;t=23, "day";r=986;t=4000', 'ratelimit-policy': '"minute";q=60;w=60, "day";q=1000' },
  ],
  [
    '0 calls · 2 saved · 75 s old: quota exhausted · 60 of 60 used this minute',
    figures({ upstreamCalls: 0, savedCalls: 2, oldestAgeMs: 74_100, staleReason: 'QUOTA_EXHAUSTED' }),
    { ratelimit: '"minute";r=0;t=23', 'ratelimit-policy': '"minute";q=60;w=60' },
  ],
  [
    `RATE_LIMITED · 0 calls · 0 saved · retry at ${SOON.toLocaleTimeString('en-GB')}`,
    { data: null, errors: [{ message: 'No.', extensions: { code: 'RATE_LIMITED', retryAt: SOON } }] },
  ],
  [
    'OUTCOME_UNKNOWN · 1 call · 0 saved',
    {
      ...figures({ upstreamCalls: 1, savedCalls: 0 }),
      errors: [{ message: 'No.', extensions: { code: 'OUTCOME_UNKNOWN' } }],
    },
  ],
  [
    'userErrors · 1 call · 0 saved',
    { ...figures({ upstreamCalls: 1, savedCalls: 0 }), data: { createPet: { userErrors: [{ code: 'bad_request' }] } } },
  ],
  [
    `dry run · 2 to 1,200 calls · fits at ${SOON.toLocaleTimeString('en-GB')}`,
    figures({ dryRun: { upstreamCalls: 1200, writes: 1, fits: false, fitsAt: SOON } }),
  ],
];
const WIDE = { width: 1280, height: 800 };

const sandbox = createSandbox();
const { calls } = sandbox;
let gateway: TestGateway;
/** Its GraphiQL knows no key. */
let keyless: TestGateway;
let browser: Browser | undefined;
/** One for all tests, since each load takes a second; the test after one that fails gets a new page. */
let page: WatchedPage['page'];
let complaints: readonly string[] | undefined;

beforeAll(async () => {
  gateway = await startGateway({
    gateway: { ...sandbox.gatewayOptions, graphiqlKey: 'demo-free', graphiqlBadDays: true },
  });
  keyless = await startGateway();
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await gateway[Symbol.asyncDispose]();
  await keyless[Symbol.asyncDispose]();
  await sandbox.close();
});

beforeEach(async ({ onTestFailed, skip }) => {
  if (!browser) return skip('no browser starts on this machine');
  onTestFailed(async () => {
    complaints = undefined;
    await page.context().close();
  });
  if (complaints) return;
  const origins = [gateway, keyless].map(({ endpoint }) => new URL(endpoint).origin);
  ({ page, complaints } = await openWatchedPage(browser, origins));
  page.setDefaultTimeout(PATIENCE.timeout);
  await page.setViewportSize(WIDE);
  await page.goto(gateway.endpoint);
  await shows(page, 'Operation Editor', 'ListPets');
});
afterEach(() => assert.deepEqual(complaints ?? [], []));

test('the first load takes less than 3 MB, and is called petql', async () => {
  await bytesOfAll();
  const urls = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name));
  // Not the browser's own count: it misses the bytes of a worker whose second start came from the cache.
  const bytes = await Promise.all([...new Set([gateway.endpoint, ...urls])].map(bytesOf));
  expect(Math.min(...bytes)).toBeGreaterThan(0);
  expect(bytes.reduce((sum, one) => sum + one)).toBeLessThan(3_000_000);
  expect(await page.title()).toBe('petql');
  await page.locator('.graphiql-logo').getByText('petql').waitFor();
  expect(await page.locator('body').innerText()).not.toContain('Yoga');
});

// The editor measured its text before its font was there.
test('the guides of indentation stand where the text does', async () => {
  const pets = editor(page, 'Operation Editor').getByText('pets', { exact: true });
  const guide = editor(page, 'Operation Editor').locator('.core-guide-indent.lvl-1').first();
  const leftOf = async (item: Locator) => Math.round((await boxOf(item)).left);
  await expect.poll(async () => (await leftOf(guide)) - (await leftOf(pets)), PATIENCE).toBe(0);
});

/** The first calls of the key. UPDATE_PICTURE=1 in the environment writes the picture again. */
test('thirty pets by alias cost one call, in the picture for the README', async ({ onTestFinished }) => {
  await openTab(page, 'ThirtyPets');
  await execute(page);
  await shows(page, 'Result Window', '"name": "Dexter"');
  await expectCost(page, '1 call · 29 saved · fresh · 1 of 60 used this minute, 1 of 1,000 today');
  // Low, so that the line under the result is seen at once.
  await page.setViewportSize({ width: 1280, height: 460 });
  onTestFinished(() => page.setViewportSize(WIDE));
  await page.mouse.move(0, 0);
  // The editors' scroll bars fade.
  if (process.env['UPDATE_PICTURE']) await page.waitForTimeout(2_000);
  const picture = await page.screenshot({ animations: 'disabled', caret: 'hide' });
  expect(picture.byteLength).toBeLessThan(300_000);
  if (process.env['UPDATE_PICTURE']) await writeFile(join(import.meta.dirname, 'graphiql.png'), picture);
});

// GraphiQL adds a tab on a reload unless its editors start with what a stored tab holds.
test('a reload takes none of the assets again, and keeps the tabs, the open one and its variables', async () => {
  for (const [index, name] of [
    [0, 'ListPets'],
    [3, 'CreatePet'],
  ] as const) {
    // An older state may be about to be written.
    await page.evaluate(() => globalThis.sessionStorage.removeItem('graphiql:tabState'));
    await openTab(page, name);
    await openTabIsStored(page, index);
    await page.reload();
    await shows(page, 'Operation Editor', name);
    expect(await tabNames(page)).toEqual(TABS);
    const bytes = await bytesOfAll();
    expect(ASSETS.filter((asset) => bytes[asset] !== 0)).toEqual([]);
  }
  await page.getByRole('button', { name: 'Variables' }).click();
  await shows(page, 'Variables', '"name": "Momo"');
});

// GraphiQL's tabs jumped away from under the pointer after the window had changed its size.
test('each example operation has a tab, with the demo key as a header', async ({ onTestFinished }) => {
  await page.setViewportSize({ width: 1000, height: 700 });
  onTestFinished(() => page.setViewportSize(WIDE));
  await page.getByRole('button', { name: 'Headers' }).click();
  for (const name of TABS.toReversed()) {
    await openTab(page, name);
    await shows(page, 'Operation Editor', name);
    await shows(page, 'Headers', '"Authorization": "Bearer demo-free"');
  }
  expect(await tabNames(page)).toEqual(TABS);
});

test('the execute button runs the first query with its variables', async () => {
  await openTab(page, 'ListPets');
  await executeTo(page, '"name": "Ada"');
  for (const name of ['Balu', 'Cleo', 'Dexter']) await shows(page, 'Result Window', `"name": "${name}"`);
  expect(await textOf(page, 'Result Window')).not.toContain('"name": "Elsa"');
});

test('the mutation of the create tab adds one pet, however often it runs', async () => {
  await openTab(page, 'CreatePet');
  await executeTo(page, '"name": "Momo"');
  await shows(page, 'Result Window', '"userErrors": []');
  await expectCost(page, '1 call · 0 saved');
  await execute(page);
  await expectCost(page, '0 calls · 0 saved');
  expect(calls.filter(({ method }) => method === 'POST')).toHaveLength(1);
});

test.each<[string, string, RegExp]>([
  ['DryRun', '"dryRun": {', /^dry run · 1 to \d calls · fits now/],
  ['Quota', '"queued": 0', /^0 calls · 0 saved/],
])('the tab %s makes no call', async (name, result, line) => {
  const before = calls.length;
  await openTab(page, name);
  await executeTo(page, result);
  await expectCost(page, line);
  expect(calls).toHaveLength(before);
});

test('the line under the result says what the response says', async ({ onTestFinished }) => {
  let next: Parameters<Route['fulfill']>[0];
  await page.route('**/graphql', (route) => route.fulfill(next));
  onTestFinished(() => page.unrouteAll());
  await openTab(page, 'ListPets');
  for (const [line, result, headers = {}] of LINES) {
    next = { json: result, headers };
    await execute(page);
    await expect.poll(() => costOf(page), PATIENCE).toBe(line);
  }
  next = { body: '<h1>Sign in</h1>' };
  await execute(page);
  await shows(page, 'Result Window', 'Expected a GraphQL response, got HTTP 200.');
});

test('behind "bad days" each story has a tab with its key, and "petql" leads back to the tabs of before', async () => {
  await openTab(page, 'Quota');
  await openTabIsStored(page, 4);
  await page.getByRole('link', { name: 'bad days' }).click();
  await shows(page, 'Operation Editor', 'SavingQuota');
  expect(await tabNames(page)).toEqual(BAD_TABS);

  await openTab(page, 'Paused');
  await shows(page, 'Headers', '"Authorization": "Bearer demo-paused"');
  await execute(page);
  await expectCost(page, '1 call · 0 saved · fresh');
  await page.waitForTimeout(1_100);
  await execute(page);
  await expectCost(page, /^1 call · 0 saved · \d s old: paused/);

  await openTabIsStored(page, BAD_TABS.indexOf('Paused'), 'bad-days:graphiql:tabState');
  await page.reload();
  await shows(page, 'Operation Editor', 'Paused');
  expect(await tabNames(page)).toEqual(BAD_TABS);
  await page.getByRole('link', { name: 'petql' }).click();
  await shows(page, 'Operation Editor', 'Quota');
  expect(await tabNames(page)).toEqual(TABS);
});

const PAUSED = BAD_DAYS.find(({ query }) => query.includes('query Paused'))?.query ?? '';

/** Opens a link to the bad days as another visitor. */
async function openBadDay(query: string): Promise<WatchedPage['page']> {
  if (!browser) throw new Error('expected a browser');
  const { page: linked } = await openWatchedPage(browser, [new URL(gateway.endpoint).origin]);
  await linked.goto(`${gateway.endpoint}?${new URLSearchParams({ 'bad-days': '', query })}`);
  return linked;
}

test.each([
  ['a bad day', PAUSED, 'Bearer demo-paused'],
  ['a bad day that was edited', PAUSED.replace('limit: 3', 'limit: 4'), 'Bearer demo-paused'],
  ['no bad day', '{ pets { id } }', 'Bearer demo-free'],
])('a link to %s has the key of its tab', async (_name, query, authorization) => {
  await using linked = await openBadDay(query);
  await shows(linked, 'Headers', `"Authorization": "${authorization}"`);
  expect(await tabNames(linked)).toHaveLength(BAD_TABS.length + (query === PAUSED ? 0 : 1));
});

test('a long bad day is there again after a reload', async () => {
  await using linked = await openBadDay(PAUSED);
  await shows(linked, 'Headers', 'demo-paused');
  await editor(linked, 'Operation Editor').getByRole('textbox').filter({ visible: true }).focus();
  await linked.keyboard.press('ControlOrMeta+Home');
  await linked.keyboard.insertText(`# ${'ж'.repeat(1_000)}\n`);
  await linked.waitForURL((url) => url.search === '?bad-days=');
  await linked.waitForFunction(() => globalThis.sessionStorage.getItem('bad-days:graphiql:tabState')?.includes('жжж'));

  await linked.reload();
  await shows(linked, 'Operation Editor', 'жжж');
  await shows(linked, 'Headers', 'demo-paused');
  expect(await tabNames(linked)).toHaveLength(BAD_TABS.length);
});

test('each tab keeps the line of its last run', async () => {
  await openTab(page, 'ListPets');
  await execute(page);
  await expectCost(page, /\d saved · fresh/);
  await openTab(page, 'CompareStatuses');
  await expectCost(page, /^would cost 1 to \d calls · fits$/);
  await openTab(page, 'ListPets');
  await expectCost(page, /\d saved · fresh/);
});

test('axe-core finds nothing but the tabs of GraphiQL, which hold buttons', async ({ onTestFinished }) => {
  onTestFinished(() => page.emulateMedia({ colorScheme: null, forcedColors: null }));
  await openTab(page, 'ListPets');
  await expectCost(page, 'call');
  const looks = [
    { colorScheme: 'light' },
    { colorScheme: 'dark' },
    { colorScheme: null, forcedColors: 'active' },
  ] as const;
  for (const look of looks) {
    await page.emulateMedia(look);
    const found = await violationsOf(page, { include: [['html']], exclude: [['.monaco-editor']] });
    expect(found.filter((violation) => !violation.startsWith('nested-interactive: '))).toEqual([]);
  }

  // Comments say what to do.
  await page.emulateMedia({ colorScheme: 'dark', forcedColors: null });
  await page.reload();
  const comments = '.graphiql-query-editor .monaco-editor.vs-dark .mtk8';
  await page.locator(comments).first().waitFor();
  expect(await violationsOf(page, { include: [[comments]] })).toEqual([]);
});

test.for([
  { width: 640, height: 400 },
  { width: 683, height: 384 },
  { width: 667, height: 375 },
  { width: 390, height: 844 },
  { width: 320, height: 256 },
  { width: 1024, height: 300 },
])('at $width × $height what is typed can be seen, and the way to the bad days', async (size, { onTestFinished }) => {
  onTestFinished(() => page.setViewportSize(WIDE));
  await page.setViewportSize(size);
  await openTab(page, 'ListPets');
  await page.evaluate(() => globalThis.scrollTo(0, 0));
  const { top, height, right } = await boxOf(page.locator('.graphiql-query-editor .graphiql-editor'));
  expect(Math.min(height, size.height - top)).toBeGreaterThan(70);
  expect(right).toBeLessThanOrEqual(size.width);
  const link = await boxOf(page.getByRole('link', { name: 'bad days' }));
  expect(link.top + link.height).toBeLessThan(top);
  expect(link.right).toBeLessThanOrEqual(size.width);
  const cost = page.locator('#cost');
  await cost.scrollIntoViewIfNeeded();
  const shown = await boxOf(cost);
  expect(shown.top + shown.height).toBeLessThanOrEqual(size.height + 1);
});

test('the keyboard leaves an editor with Tab, and what is typed stays', async () => {
  await openTab(page, 'ListPets');
  const before = await textOf(page, 'Operation Editor');
  await editor(page, 'Operation Editor').getByRole('textbox').filter({ visible: true }).focus();
  await page.keyboard.press('Tab');
  const focused = () => page.evaluate(() => globalThis.document.activeElement?.closest('.monaco-editor') === null);
  expect(await focused()).toBe(true);
  expect(await textOf(page, 'Operation Editor')).toBe(before);
});

test('works, without memory, where the browser blocks the data of sites', async () => {
  if (!browser) throw new Error('expected a browser');
  const blocked = await openWatchedPage(browser, [new URL(gateway.endpoint).origin]);
  await using other = blocked.page;
  await other.addInitScript(() => {
    for (const name of ['sessionStorage', 'localStorage'])
      Object.defineProperty(globalThis, name, {
        get: () => {
          throw new DOMException('The operation is insecure.', 'SecurityError');
        },
      });
  });
  await other.goto(gateway.endpoint);
  await shows(other, 'Operation Editor', 'ListPets');
  await executeTo(other, '"name": "Ada"');
  await other.getByRole('link', { name: 'bad days' }).click();
  await shows(other, 'Operation Editor', 'SavingQuota');
  expect(blocked.complaints).toEqual([]);
});

test('at 390 px the query stands above the result, and both can be used', async ({ onTestFinished }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  onTestFinished(() => page.setViewportSize(WIDE));
  await openTab(page, 'CompareStatuses');
  await executeTo(page, '"available"');
  await expectCost(page, 'saved');
  const names = ['Operation Editor', 'Headers', 'Result Window'];
  const boxes = await Promise.all([...names.map((name) => editor(page, name)), page.locator('#cost')].map(boxOf));
  let bottom = 0;
  for (const [index, { left, right, top, height }] of boxes.entries()) {
    expect([left >= 0, right - left > 330, right <= 390, top >= bottom]).toEqual([true, true, true, true]);
    expect(height).toBeGreaterThan([150, 30, 250, 20][index] ?? NaN);
    bottom = top + height;
  }
  expect(bottom).toBeLessThanOrEqual(844);
});

test('the docs describe the fields of Query and lead to Pet and PetStatus', async () => {
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
  const docs = page.getByRole('region', { name: 'Documentation Explorer' });
  const types = ['Query', 'Pet', 'PetStatus'].map((name) => schema.getType(name));
  for (const type of types) {
    await docs
      .getByRole('link', { name: type?.name ?? '', exact: true })
      .first()
      .click();
    const fields = isObjectType(type) ? Object.values(type.getFields()) : [];
    const texts = [type, ...fields].map((one) => one?.description ?? 'a description');
    for (const text of texts) await expect.poll(() => docs.innerText(), PATIENCE).toContain(text);
  }
  for (const status of ['AVAILABLE', 'PENDING', 'SOLD']) expect(await docs.innerText()).toContain(status);
});

test("the editor completes the schema's fields, with the gateway's workers", async () => {
  await editor(page, 'Operation Editor').getByRole('textbox').focus();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('{ pet');
  const suggestions = page.getByRole('listbox', { name: 'Suggest' }).getByRole('option');
  // Behind its name, the chosen one shows its type.
  const names = async () => (await suggestions.allInnerTexts()).map((text) => text.split('\n')[0]);
  await expect.poll(names, PATIENCE).toEqual(['pet', 'pets', 'petsById']);
  const workers = page.workers().map((worker) => worker.url());
  expect(workers).toContainEqual(expect.stringMatching(/\/graphql\.js$/));
  expect(workers.filter((url) => !url.startsWith(`${gateway.endpoint}/graphiql/`))).toEqual([]);
});

test('a typed key holds for all tabs of the page and for a reload, and in no other storage', async () => {
  await page.goto(keyless.endpoint);
  await shows(page, 'Headers', 'YOUR_API_KEY');
  // The bad days have demo keys, and no other API knows them.
  expect(await page.getByRole('link', { name: 'bad days' }).count()).toBe(0);
  await editor(page, 'Headers').getByRole('textbox').filter({ visible: true }).focus();
  await page.keyboard.press('ControlOrMeta+a');
  // The editor closes the bracket.
  await page.keyboard.insertText('{ "Authorization": "Bearer demo-pro"');
  await shows(page, 'Headers', 'demo-pro');
  await execute(page);
  await expectCost(page, '1 call · 0 saved');
  await openTab(page, 'CompareStatuses');
  await execute(page);
  await expectCost(page, 'fresh');
  await openTabIsStored(page, 2);
  await openTab(page, 'ListPets');
  await openTabIsStored(page, 0);
  await page.reload();
  await shows(page, 'Headers', 'demo-pro');
  await execute(page);
  await shows(page, 'Result Window', '"name": "Ada"');
  expect(await page.evaluate(() => JSON.stringify(globalThis.localStorage))).not.toContain('demo-pro');
});

/** Once all are there. */
async function bytesOfAll(): Promise<Record<string, number>> {
  const names = async () => Object.keys(await loadedBytes(page));
  await expect.poll(names, PATIENCE).toEqual(expect.arrayContaining(ASSETS));
  return loadedBytes(page);
}

/** How much of the wire a file takes. */
async function bytesOf(url: string): Promise<number> {
  const headers = { accept: 'text/html, */*', 'accept-encoding': 'br' };
  const response = await fetch(url, { method: 'HEAD', headers });
  return Number(response.headers.get('content-length'));
}
