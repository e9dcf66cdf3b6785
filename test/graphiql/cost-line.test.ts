import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { startBrowser } from '../support/browser.ts';
import { slow, tooMany } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/start-gateway.ts';
import { PATIENCE, costOf, expectCost, execute, openTab, shows, typeInto } from './graphiql-page.ts';

const EDITOR = 'Operation Editor';
const HEADERS = 'Headers';
const VARIABLES = 'Variables';
/** Longer than an operation rests before its dry run. */
const LONG_REST_MS = 600;

let browser: Browser | undefined;
/** One for all tests: in a new page the first load takes three times as long. */
let page: Page;
let gateway: TestGateway;

beforeAll(async () => {
  browser = await startBrowser();
  if (browser) {
    page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE.timeout);
    await page.addInitScript(() => globalThis.sessionStorage.clear());
    await page.addInitScript(() => globalThis.localStorage.clear());
  }
  gateway = await startGateway({ gateway: { graphiqlKey: 'demo-free' } });
});
afterAll(async () => {
  await browser?.close();
  await gateway[Symbol.asyncDispose]();
});
beforeEach(({ skip }) => {
  if (!browser) skip('no browser starts on this machine');
});

/** What a page of GraphiQL sends. */
interface Explorer {
  readonly dryRuns: readonly Request[];
  /** Dry runs at the same time. */
  readonly mostPending: number;
}

/** Loads GraphiQL as a new visitor. */
async function open({ endpoint }: TestGateway = gateway): Promise<Explorer> {
  const explorer = { dryRuns: [] as Request[], mostPending: 0 };
  const pending = new Set<Request>();
  const onRequest = (request: Request) => {
    if (request.headers()['petql-dry-run'] === undefined) return;
    explorer.dryRuns.push(request);
    pending.add(request);
    explorer.mostPending = Math.max(explorer.mostPending, pending.size);
  };
  const onRequestFinished = (request: Request) => pending.delete(request);
  page.on('request', onRequest).on('requestfinished', onRequestFinished);
  onTestFinished(async () => {
    page.off('request', onRequest).off('requestfinished', onRequestFinished);
    await page.unrouteAll();
  });
  await page.goto(endpoint);
  await shows(page, EDITOR, 'ListPets');
  return explorer;
}

async function openWith(options: TestGatewayOptions['gateway'] = {}): Promise<Explorer> {
  const other = await startGateway({ gateway: options });
  onTestFinished(() => other[Symbol.asyncDispose]());
  return open(other);
}

describe('the cost of an operation', () => {
  test('is shown while it is typed, without a call, by one dry run at a time, and by none for what is unchanged', async () => {
    const explorer = await open();
    const { dryRuns } = explorer;
    const before = gateway.petApi.log.length;
    await expectCost(page, 'would cost');

    // A response takes longer than the pauses.
    await page.route('**/graphql', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 600));
      await route.continue();
    });
    await typeInto(page, EDITOR, '{ a: pets { id } b: pets(status: SOLD) { id } c: pets(status: PENDING) { id ');
    for (const more of ['name ', 'status ', 'categoryId ']) {
      await page.waitForTimeout(400);
      await page.keyboard.type(more);
    }
    await expectCost(page, /^would cost 1 to 3 calls · fits$/);
    await page.waitForTimeout(LONG_REST_MS);
    expect(explorer.mostPending).toBe(1);

    const sent = dryRuns.length;
    expect(sent).toBeGreaterThan(2);
    await typeInto(page, HEADERS, '{ "Authorization": "Bearer demo-free", "Prefer": "wait=2" ');
    // GraphiQL keeps what was typed for a tab once it rests.
    await page.waitForTimeout(LONG_REST_MS);
    await openTab(page, 'DryRun');
    await expectCost(page, 'would cost 1 to 5 calls · fits');
    await page.getByRole('tab').first().getByRole('button').first().click();
    await expectCost(page, 'would cost 1 to 3 calls · fits');
    await page.waitForTimeout(LONG_REST_MS);
    expect(dryRuns).toHaveLength(sent + 1);
    expect(gateway.petApi.log).toHaveLength(before);
  });

  test('follows the variables, and what ran shows what it cost until it is edited', async () => {
    await open();
    const before = gateway.petApi.log.length;
    await typeInto(page, EDITOR, 'query Some($no: Boolean = true) { pets @skip(if: $no) { id ');
    await expectCost(page, 'would cost no call');
    await page.getByRole('button', { name: VARIABLES }).click();
    await typeInto(page, VARIABLES, '{ "no": false ');
    await expectCost(page, 'would cost 1 call · fits');
    await execute(page);
    await expectCost(page, /^1 call · 0 saved · fresh · \d+ of 60 used this minute, \d+ of 1,000 today$/);
    await typeInto(page, VARIABLES, '{ "no": true ');
    await expectCost(page, 'would cost no call');
    expect(gateway.petApi.log).toHaveLength(before + 1);
  });

  test('is not shown of a document that is cut off, or has no such field, nor is that of the run before', async () => {
    await open();
    await execute(page);
    await expectCost(page, 'saved');
    for (const text of ['{ pets { id } ) ', '{ cats { id ']) {
      await typeInto(page, EDITOR, '{ pets { id ');
      await expectCost(page, 'would cost 1 call');
      await typeInto(page, EDITOR, text);
      await expect.poll(() => costOf(page), PATIENCE).toBe('');
    }
  });

  test('says when it fits the quota', async () => {
    await open();
    const fitsAt = new Date(Date.now() + 1_000);
    const dryRun = { upstreamCalls: 3, writes: 0, fits: false, fitsAt, waitMs: 1_000, window: 'MINUTE' };
    await page.route('**/graphql', (route) => route.fulfill({ json: { data: {}, extensions: { petql: { dryRun } } } }));
    await openTab(page, 'CompareStatuses');
    await expectCost(page, /^would cost 1 to 3 calls · fits at (?:\d+ \w+ )?\d\d:\d\d:\d\d$/);
  });

  test('is not asked for where a run would use no key, and is with the key of the server', async () => {
    const { dryRuns } = await openWith();
    await typeInto(page, EDITOR, '{ pets { id ');
    await page.waitForTimeout(LONG_REST_MS);
    expect([dryRuns.length, await costOf(page)]).toEqual([0, '']);

    await openWith({ petApiKey: 'demo-pro' });
    await expectCost(page, 'would cost 1 to 2 calls · fits');
  });
});

test('a run that waits says what it waits for', async () => {
  const waiting = await startGateway({ gateway: { graphiqlKey: 'demo-free', maxWaitMs: 9_000 } });
  onTestFinished(() => waiting[Symbol.asyncDispose]());
  await open(waiting);
  await expectCost(page, 'would cost');
  waiting.petApi.fault = slow(1_500);
  await execute(page);
  await expectCost(page, /^running$/);
  await expectCost(page, /^waiting for the pet API$/);
  await expectCost(page, /^\d calls? · 0 saved · fresh/);

  waiting.petApi.fault = tooMany(3);
  await openTab(page, 'CreatePet');
  await execute(page);
  await expectCost(page, /^waiting for the quota, up to 9 s$/);
});

test('the cost of the run before is not shown beside an error of GraphiQL', async () => {
  await open();
  await execute(page);
  await expectCost(page, 'saved');
  await typeInto(page, HEADERS, 'no JSON');
  await execute(page);
  await shows(page, 'Result Window', 'invalid JSON');
  await expect.poll(() => costOf(page), PATIENCE).toBe('');
});

test('each visitor creates a pet of their own', async () => {
  const keys = new Set<string>();
  for (let visitor = 0; visitor < 2; visitor += 1) {
    await open();
    await openTab(page, 'CreatePet');
    await page.getByRole('button', { name: VARIABLES }).click();
    await shows(page, VARIABLES, '"idempotencyKey": "momo-');
    keys.add(await page.getByRole('region', { name: VARIABLES }).innerText());
  }
  expect(keys.size).toBe(2);
});
