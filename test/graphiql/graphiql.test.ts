import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Locator, Page, Route } from 'playwright-core';
import { afterAll, assert, beforeAll, beforeEach, expect, test } from 'vitest';
import { schema } from '../../src/schema/schema.ts';
import { startBrowser } from '../support/browser.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

/** GraphiQL's script, style and editor workers. */
const ASSETS = ['editorWorkerService.js', 'graphiql.css', 'graphiql.js', 'graphql.js', 'json.js'];
const TABS = ['ListPets', 'ThirtyPets', 'CompareStatuses', 'CreatePet', 'Quota', 'DryRun'];
/** The line under the result for what a response holds. */
const LINES: readonly (readonly [string, object, Record<string, string>?])[] = [
  [
    '1 call · 29 saved · fresh · 57 of 60 this minute, 986 of 1,000 today',
    { data: {}, extensions: { petql: { upstreamCalls: 1, savedCalls: 29, oldestAgeMs: 7 } } },
    {
      ratelimit: '"minute";r=57;t=23, "day";r=986;t=4000',
      'ratelimit-policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
    },
  ],
  [
    '0 calls · 2 saved · 75 s old: quota exhausted · 0 left this minute',
    {
      data: {},
      extensions: { petql: { upstreamCalls: 0, savedCalls: 2, oldestAgeMs: 74_100, staleReason: 'QUOTA_EXHAUSTED' } },
    },
    { ratelimit: 'junk, "minute"; t=23; r=0, "day";t=1', 'ratelimit-policy': '"minute";w=60' },
  ],
  [
    '0 calls · 0 saved · retry in 23 s',
    { data: null, errors: [{ message: 'Rate limited.', extensions: { code: 'RATE_LIMITED', retryAfterMs: 22_500 } }] },
  ],
  [
    'dry run · at most 1,200 calls · fits in 3 min',
    { data: {}, extensions: { petql: { dryRun: { upstreamCalls: 1200, fits: false, waitMs: 180_000 } } } },
  ],
];
const PATIENCE = { timeout: 15_000 };

let gateway: TestGateway;
/** Its GraphiQL knows no key. */
let keyless: TestGateway;
let browser: Browser | undefined;
let page: Page;

beforeAll(async () => {
  gateway = await startGateway({ gateway: { graphiqlKey: 'demo-free' } });
  keyless = await startGateway();
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await gateway[Symbol.asyncDispose]();
  await keyless[Symbol.asyncDispose]();
});

beforeEach(async ({ onTestFinished, skip }) => {
  if (!browser) return skip('no browser starts on this machine');
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(PATIENCE.timeout);
  const complaints = listenForComplaints(page);
  onTestFinished(async () => {
    await page.context().close();
    assert.deepEqual(complaints, []);
  });
  await page.goto(gateway.endpoint);
  await shows('Operation Editor', 'ListPets');
});

/** The first calls of the key. UPDATE_PICTURE=1 in the environment writes the picture again. */
test('thirty pets by alias cost one call, in the picture for the README', async () => {
  await openTab('ThirtyPets');
  await execute();
  await shows('Result Window', '"name": "Dexter"');
  await usageShows('1 call · 29 saved · fresh · 59 of 60 this minute, 999 of 1,000 today');
  await page.mouse.move(0, 0);
  const picture = await page.screenshot({ animations: 'disabled', caret: 'hide' });
  expect(picture.byteLength).toBeLessThan(300_000);
  if (process.env['UPDATE_PICTURE']) await writeFile(join(import.meta.dirname, 'graphiql.png'), picture);
});

test('the first load takes less than 3 MB, and a reload takes none of the assets again', async () => {
  const first = await loadedFiles();
  expect(first.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(3_000_000);
  expect(assetsOverTheWire(first)).toEqual(ASSETS);

  await page.reload();
  expect(assetsOverTheWire(await loadedFiles())).toEqual([]);
});

test('the page is called petql, in its title and in its header', async () => {
  expect(await page.title()).toBe('petql');
  await page.getByText('petql', { exact: true }).waitFor();
  expect(await page.locator('body').innerText()).not.toContain('Yoga');
});

test('each example operation has a tab, with the demo key as a header', async () => {
  expect(await tabNames()).toEqual(TABS);
  for (const name of TABS.toReversed()) {
    await openTab(name);
    await shows('Operation Editor', name);
    await shows('Headers', '"Authorization": "Bearer demo-free"');
  }
});

// GraphiQL's tabs jumped away from under the pointer after that.
test('a tab opens at one click after the window has changed its size', async () => {
  await page.setViewportSize({ width: 1000, height: 700 });
  await openTab('ThirtyPets');
  await openTab('ListPets');
  expect(await tabNames()).toEqual(TABS);
});

// The editor measured its text before its font was there.
test('the guides of indentation stand where the text does', async () => {
  const field = editor('Operation Editor').getByText('pets', { exact: true });
  const guide = editor('Operation Editor').locator('.core-guide-indent.lvl-1').first();
  await expect.poll(async () => (await leftOf(guide)) - (await leftOf(field)), PATIENCE).toBe(0);
});

test('the execute button runs the first query with its variables', async () => {
  await execute();
  for (const name of ['Ada', 'Balu', 'Cleo', 'Dexter']) await shows('Result Window', `"name": "${name}"`);
  expect(await textOf('Result Window')).not.toContain('"name": "Elsa"');
});

test('the mutation of the create tab adds one pet, however often it runs', async () => {
  await openTab('CreatePet');
  await execute();
  await shows('Result Window', '"name": "Momo"');
  await shows('Result Window', '"userErrors": []');
  await usageShows('1 call · 0 saved');
  await execute();
  await usageShows('0 calls · 0 saved');
  expect(gateway.sandbox.calls.filter(({ method }) => method === 'POST')).toHaveLength(1);
});

test('the dry run tab shows the cost at most, and calls nothing', async () => {
  const before = gateway.sandbox.calls.length;
  await openTab('DryRun');
  await execute();
  await shows('Result Window', '"dryRun": {');
  await usageShows(/^dry run · at most \d calls · fits now/);
  expect(gateway.sandbox.calls).toHaveLength(before);
});

test('the quota tab costs no call', async () => {
  await openTab('Quota');
  await execute();
  await shows('Result Window', '"queued": 0');
  expect(await usage()).toContain('0 calls · 0 saved');
});

test('the line under the result says what the response says', async () => {
  await using answers = await answerWith();
  for (const [line, result, headers = {}] of LINES) {
    answers.next = { json: result, headers };
    await execute();
    await expect.poll(usage, PATIENCE).toBe(line);
  }
  answers.next = { body: '<h1>Sign in</h1>' };
  await execute();
  await shows('Result Window', 'Expected a GraphQL response, got HTTP 200.');
});

test('each tab keeps the line of its last run', async () => {
  await execute();
  await usageShows(/\d saved · fresh/);
  await openTab('Quota');
  await expect.poll(usage, PATIENCE).toBe('');
  await openTab('ListPets');
  await usageShows(/\d saved · fresh/);
});

test('at 390 px the query stands above the result, and both can be used', async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  await execute();
  await shows('Result Window', '"name": "Ada"');
  await usageShows('fresh');
  const query = await boxOf(editor('Operation Editor'));
  const headers = await boxOf(editor('Headers'));
  const result = await boxOf(editor('Result Window'));
  const line = await boxOf(page.locator('#usage'));
  for (const box of [query, headers, result, line]) {
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width).toBeLessThanOrEqual(390);
    expect(box.width).toBeGreaterThan(330);
  }
  expect(query.height).toBeGreaterThan(150);
  expect(headers.y).toBeGreaterThanOrEqual(query.y + query.height);
  expect(result.y).toBeGreaterThanOrEqual(headers.y + headers.height);
  expect(result.height).toBeGreaterThan(250);
  expect(line.y).toBeGreaterThanOrEqual(result.y + result.height);
  expect(line.y + line.height).toBeLessThanOrEqual(844);
});

test('a typed key holds for all tabs of the page and for a reload, and in no other storage', async () => {
  await page.goto(keyless.endpoint);
  await shows('Headers', 'YOUR_API_KEY');
  await typeInto('Headers', '{ "Authorization": "Bearer demo-pro"');
  await execute();
  await usageShows('1 call · 0 saved');
  await openTab('CompareStatuses');
  await execute();
  await usageShows('fresh');
  await openTab('ListPets');
  await openTabIsStored(0);
  await page.reload();
  await shows('Headers', 'demo-pro');
  await execute();
  await shows('Result Window', '"name": "Ada"');
  expect(await page.evaluate(() => JSON.stringify(globalThis.localStorage))).not.toContain('demo-pro');
});

// GraphiQL adds a tab on a reload unless its editors start with what a stored tab holds.
test('a reload keeps the tabs, the open one and its variables', async () => {
  await openTabIsStored(0);
  await page.reload();
  await shows('Operation Editor', 'ListPets');
  expect(await tabNames()).toEqual(TABS);

  await openTab('CreatePet');
  await openTabIsStored(3);
  await page.reload();
  await page.getByRole('button', { name: 'Variables' }).click();
  await shows('Operation Editor', 'CreatePet');
  await shows('Variables', '"name": "Momo"');
  expect(await tabNames()).toEqual(TABS);
});

test('the docs describe the fields of Query and lead to Pet and PetStatus', async () => {
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
  const docs = page.getByRole('region', { name: 'Documentation Explorer' });
  const follow = (link: string) => docs.getByRole('link', { name: link, exact: true }).first().click();
  const reads = async (text: string | null | undefined) => {
    await expect.poll(() => docs.innerText(), PATIENCE).toContain(text ?? 'a description');
  };

  await follow('Query');
  for (const { description } of Object.values(schema.getQueryType()?.getFields() ?? {})) await reads(description);
  await follow('Pet');
  await reads(schema.getType('Pet')?.description);
  await follow('PetStatus');
  await reads(schema.getType('PetStatus')?.description);
  for (const status of ['AVAILABLE', 'PENDING', 'SOLD']) await reads(status);
});

test("the editor completes the schema's fields, with workers of the gateway's own", async () => {
  await editor('Operation Editor').getByRole('textbox').focus();
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

/** Stands in for the gateway. */
async function answerWith() {
  const answers: { next: Parameters<Route['fulfill']>[0]; [Symbol.asyncDispose](): Promise<void> } = {
    next: {},
    [Symbol.asyncDispose]: () => page.unroute(gateway.endpoint),
  };
  await page.route('**/graphql', (route) => {
    return route.request().method() === 'POST' ? route.fulfill(answers.next) : route.fallback();
  });
  return answers;
}

/** What a page says on its console as an error, throws, or asks of another host than the gateways'. */
function listenForComplaints(of: Page): string[] {
  const heard: string[] = [];
  of.on('console', (message) => {
    if (message.type() === 'error') heard.push(`console: ${message.text()}`);
  });
  of.on('pageerror', (error) => heard.push(`uncaught: ${error.message}`));
  of.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    const isOwn = [gateway, keyless].some(({ endpoint }) => endpoint.startsWith(`${origin}/`));
    if (!isOwn && protocol !== 'data:' && protocol !== 'blob:') heard.push(`asked: ${request.url()}`);
  });
  of.on('websocket', (socket) => heard.push(`asked: ${socket.url()}`));
  return heard;
}

interface LoadedFile {
  readonly name: string;
  /** Over the wire: none for a file from the browser's cache. */
  readonly bytes: number;
}

/** Every file of the page and its workers, once all of them are there. */
async function loadedFiles(): Promise<LoadedFile[]> {
  await expect
    .poll(filesSoFar, PATIENCE)
    .toEqual(expect.arrayContaining(ASSETS.map((name) => expect.objectContaining({ name }))));
  return filesSoFar();
}

function filesSoFar(): Promise<LoadedFile[]> {
  return page.evaluate(() =>
    [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].map((entry) => {
      const { name, transferSize } = entry as PerformanceResourceTiming;
      return { name: name.slice(name.lastIndexOf('/') + 1), bytes: transferSize };
    }),
  );
}

function assetsOverTheWire(files: readonly LoadedFile[]): string[] {
  return files.flatMap(({ name, bytes }) => (bytes > 0 && ASSETS.includes(name) ? [name] : [])).toSorted();
}

function tabNames(): Promise<string[]> {
  const tabs = page.getByRole('tablist', { name: 'Select active operation' });
  return tabs.getByRole('tab').allInnerTexts();
}

/** Until the address says it too, GraphiQL would still execute the operation of the tab before. */
async function openTab(name: string): Promise<void> {
  await page.getByRole('tab', { name }).getByRole('button', { name, exact: true }).click();
  await page.waitForURL((url) => url.searchParams.get('query')?.includes(name) === true);
}

/** GraphiQL writes it down a moment later. */
async function openTabIsStored(index: number): Promise<void> {
  await page.waitForFunction(
    (end) => globalThis.sessionStorage.getItem('graphiql:tabState')?.endsWith(end),
    `"activeTabIndex":${index}}`,
  );
}

async function execute(): Promise<void> {
  await page.getByRole('button', { name: /^Execute query/ }).click();
}

function editor(name: string): Locator {
  return page.getByRole('region', { name, exact: true });
}

async function leftOf(item: Locator): Promise<number> {
  return Math.round((await item.boundingBox())?.x ?? NaN);
}

/** The text that an editor shows. It writes its spaces as ones that do not break. */
async function textOf(name: string): Promise<string> {
  return (await editor(name).locator('.view-lines').filter({ visible: true }).innerText()).replaceAll('\u00a0', ' ');
}

async function shows(name: string, text: string): Promise<void> {
  await expect.poll(() => textOf(name), PATIENCE).toContain(text);
}

/** The editor closes the bracket. */
async function typeInto(name: string, text: string): Promise<void> {
  await editor(name).getByRole('textbox').filter({ visible: true }).focus();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.insertText(text);
  await shows(name, text);
}

/** The line under the result. Its spaces are partly ones that do not break. */
async function usage(): Promise<string> {
  const texts = await page.locator('#usage').allTextContents();
  return texts.join('').replaceAll('\u00a0', ' ');
}

async function usageShows(part: string | RegExp): Promise<void> {
  await expect.poll(usage, PATIENCE).toMatch(part);
}

async function boxOf(item: Locator) {
  return (await item.boundingBox()) ?? { x: NaN, y: NaN, width: NaN, height: NaN };
}
