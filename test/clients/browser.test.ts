import { request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import {
  PATIENCE,
  execute,
  openTab,
  openTabIsStored,
  openWatchedPage,
  shows,
  tabNames,
  typeInto,
} from '../graphiql/graphiql-page.ts';
import { startBrowser } from '../support/browser.ts';
import { serve } from '../support/serve.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

let gateway: TestGateway;
let browser: Browser | undefined;

beforeAll(async () => {
  browser = await startBrowser();
  gateway = await startGateway({ gateway: { graphiqlKey: 'demo-free', corsOrigins: ['null', 'http://LOCALHOST:1'] } });
});
afterAll(async () => {
  await browser?.close();
  await gateway[Symbol.asyncDispose]();
});

let page: Page;
let complaints: readonly string[] = [];

/** Opens a page of another visitor. */
async function open(url: string): Promise<void> {
  if (!browser) throw new Error('expected a browser');
  ({ page, complaints } = await openWatchedPage(browser, [new URL(url).origin, new URL(gateway.endpoint).origin]));
  page.setDefaultTimeout(PATIENCE.timeout);
  await page.goto(url);
}

beforeEach(({ skip }) => {
  if (!browser) skip('no browser starts on this machine');
});
afterEach(async () => {
  await page?.close();
});

const EDITOR = 'Operation Editor';

test('craftcms/cms#10064: GraphiQL is there again after a long query, and the address stays short', async () => {
  await open(gateway.endpoint);
  await shows(page, EDITOR, 'ListPets');
  // Each letter takes six bytes of an address.
  const comment = 'ж'.repeat(40);
  await typeInto(page, EDITOR, `query Long { pets(limit: 1) { name `);
  await page.waitForURL((url) => url.searchParams.get('query')?.includes('Long') === true);
  await page.keyboard.press('ControlOrMeta+Home');
  await page.keyboard.insertText(Array.from({ length: 95 }, () => `# ${comment}\n`).join(''));
  await page.waitForURL((url) => url.search === '');
  await openTabIsStored(page, 0);
  await page.waitForFunction(() => globalThis.sessionStorage.getItem('graphiql:tabState')?.includes('жжж'));

  const response = await page.reload();
  expect(response?.status()).toBe(200);
  await shows(page, EDITOR, comment);
  expect(await tabNames(page)).toHaveLength(6);
  await page.keyboard.press('Escape');
  await execute(page);
  await shows(page, 'Result Window', '"name": "Ada"');
  expect(complaints).toEqual([]);
});

test('express-graphql#16: a link brings its variables and the name of its operation, and so does a reload', async () => {
  const query = 'query A($l: Int) { pets(limit: $l) { id } }\nquery B($l: Int) { pets(limit: $l) { name } }';
  const link = new URLSearchParams({ query, variables: '{"l":2}', operationName: 'B' });
  await open(`${gateway.endpoint}?${link}`);
  for (const load of [undefined, () => page.reload()]) {
    await load?.();
    await shows(page, EDITOR, 'query B');
    await shows(page, 'Variables', '{"l":2}');
    const sent = page.waitForRequest(
      (one) => one.method() === 'POST' && !one.headers()['petql-dry-run'] && !one.postData()?.includes('__schema'),
    );
    // The keyboard begins where the page does.
    expect(await page.evaluate(() => globalThis.document.activeElement?.tagName)).toBe('BODY');
    await page.getByRole('region', { name: EDITOR }).getByRole('textbox').filter({ visible: true }).focus();
    await page.keyboard.press('ControlOrMeta+Enter');
    expect((await sent).postDataJSON()).toEqual({ query, variables: { l: 2 }, operationName: 'B' });
    await shows(page, 'Result Window', '"name": "Balu"');
    await openTabIsStored(page, 0);
  }
  expect(await tabNames(page)).toEqual([
    'B',
    'ListPets',
    'ThirtyPets',
    'CompareStatuses',
    'CreatePet',
    'Quota',
    'DryRun',
  ]);
  expect(complaints).toEqual([]);
});

test('graphiql#3711: the address has the variables that were typed, so that it can be shared', async () => {
  await open(
    `${gateway.endpoint}?${new URLSearchParams({ query: 'query Some($l: Int) { pets(limit: $l) { id } }', variables: '{"l":2}' })}`,
  );
  await shows(page, 'Variables', '{"l":2}');
  await typeInto(page, 'Variables', '{ "l": 3 ');
  await page.waitForURL((url) => url.searchParams.get('variables')?.includes('3') === true);
  await openTab(page, 'Quota');
  expect(new URL(page.url()).searchParams.has('variables')).toBe(false);
  expect(complaints).toEqual([]);
});

/** What nginx makes of `location /petql/ { proxy_pass http://petql/; }`. */
function stripping(prefix: string) {
  return (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { url = '', method, headers } = incoming;
    if (!url.startsWith(`${prefix}/`)) return void outgoing.writeHead(404).end();
    const target = new URL(url.slice(prefix.length), gateway.endpoint);
    const passed = request(target, { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    incoming.pipe(passed);
  };
}

test.each(['/petql', '/a/b'])(
  'graphql-dotnet/server#381: GraphiQL works behind a proxy that strips %s',
  async (prefix) => {
    const proxy = await serve(stripping(prefix));
    onTestFinished(() => proxy[Symbol.asyncDispose]());
    // From the root of the prefix, as somebody who types the address.
    await open(`${proxy.origin}${prefix}/`);
    expect(new URL(page.url()).pathname).toBe(`${prefix}/graphql`);
    await shows(page, EDITOR, 'ListPets');
    await execute(page);
    await shows(page, 'Result Window', '"name": "Ada"');
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    await page.getByRole('region', { name: 'Documentation Explorer' }).getByRole('link', { name: 'Query' }).waitFor();
    await expect.poll(() => page.workers().length, PATIENCE).toBeGreaterThan(0);
    for (const worker of page.workers()) expect(worker.url()).toContain(`${prefix}/graphql/graphiql/`);
    expect(complaints).toEqual([]);
  },
);

/** Reads pets from a page, or from a frame in it that has no origin. */
async function askFrom(place: 'frame' | 'page', credentials: 'include' | 'omit'): Promise<unknown> {
  await using pages = await serve((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<iframe sandbox="allow-scripts" srcdoc="<p>framed"></iframe>');
  });
  await open(pages.origin);
  const asking = place === 'frame' ? page.frames()[1] : page.mainFrame();
  return asking?.evaluate(
    async ([url, chosen]) => {
      const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };
      const body = '{"query":"{ pets(limit: 1) { id } }"}';
      const sent = fetch(url, { method: 'POST', headers, body, credentials: chosen });
      const response = await sent.catch(() => undefined);
      return response && [response.headers.get('cache-status'), Object.keys((await response.json()).data)];
    },
    [gateway.endpoint, credentials] as const,
  );
}

test('pydantic/logfire-js#89: a page whose origin is null reads responses where that is named, and others do not', async () => {
  expect(await askFrom('frame', 'omit')).toEqual([expect.stringMatching(/^petql; /), ['pets']]);
  expect(await askFrom('page', 'omit')).toBeUndefined();
});

test("apollo-server#514: the browser refuses responses to pages that set credentials: 'include'", async () => {
  expect(await askFrom('frame', 'include')).toBeUndefined();
});
