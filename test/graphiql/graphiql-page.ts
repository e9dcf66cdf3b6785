import type { Browser, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

export const PATIENCE = { timeout: 30_000 };

export interface WatchedPage {
  readonly page: Page;
  /** What the page says on its console as an error, throws, or requests of other origins. */
  readonly complaints: readonly string[];
}

export async function openWatchedPage(browser: Browser, origins: readonly string[]): Promise<WatchedPage> {
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (!['data:', 'blob:'].includes(protocol) && !origins.includes(origin)) complaints.push(request.url());
  });
  page.on('websocket', (socket) => complaints.push(socket.url()));
  return { page, complaints };
}

/** The bytes of each file of the page and its workers over the wire; 0 for one from the browser's cache. */
export function loadedBytes(page: Page): Promise<Record<string, number>> {
  return page.evaluate(() => {
    const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    const bytes: Record<string, number> = {};
    for (const { name, transferSize } of entries as PerformanceResourceTiming[]) {
      const file = name.slice(name.lastIndexOf('/') + 1);
      // A worker that is started twice comes from the browser's cache the second time.
      bytes[file] = (bytes[file] ?? 0) + transferSize;
    }
    return bytes;
  });
}

export async function boxOf(item: Locator) {
  const { x, y, width, height } = (await item.boundingBox()) ?? { x: NaN, y: NaN, width: NaN, height: NaN };
  return { left: x, right: x + width, top: y, height };
}

export function tabNames(page: Page): Promise<string[]> {
  const tabs = page.getByRole('tablist', { name: 'Select active operation' });
  return tabs.getByRole('tab').allInnerTexts();
}

/** Until the address says it too, GraphiQL would still execute the operation of the tab before. */
export async function openTab(page: Page, name: string): Promise<void> {
  await page.getByRole('tab', { name }).getByRole('button', { name, exact: true }).click();
  await page.waitForURL((url) => url.searchParams.get('query')?.includes(name) === true);
}

/** GraphiQL writes it down a moment later. */
export async function openTabIsStored(page: Page, index: number, name = 'graphiql:tabState'): Promise<void> {
  await page.waitForFunction(
    ([item = '', end = '']) => globalThis.sessionStorage.getItem(item)?.endsWith(end),
    [name, `"activeTabIndex":${index}}`],
  );
}

/** Executes the operation, whose result has a text that the last result of the tab has not. */
export async function executeTo(page: Page, text: string): Promise<void> {
  expect(await textOf(page, 'Result Window')).not.toContain(text);
  await execute(page);
  await shows(page, 'Result Window', text);
}

export async function execute(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Execute query/ }).click();
}

export function editor(page: Page, name: string): Locator {
  return page.getByRole('region', { name, exact: true });
}

/** Replaces the text of an editor, which closes brackets itself, as somebody who types. */
export async function typeInto(page: Page, name: string, text: string, delay = 0): Promise<void> {
  await editor(page, name).getByRole('textbox').filter({ visible: true }).focus();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(text, { delay });
}

/** The text that an editor shows. It writes its spaces as ones that do not break. */
export async function textOf(page: Page, name: string): Promise<string> {
  const lines = editor(page, name).locator('.view-lines').filter({ visible: true });
  return (await lines.innerText()).replaceAll('\u00a0', ' ');
}

export async function shows(page: Page, name: string, text: string): Promise<void> {
  await expect.poll(() => textOf(page, name), PATIENCE).toContain(text);
}

/** The line under the result. Its spaces are partly ones that do not break. */
export async function costOf(page: Page): Promise<string> {
  const texts = await page.locator('#cost').allTextContents();
  return texts.join('').replaceAll('\u00a0', ' ');
}

export async function expectCost(page: Page, part: string | RegExp): Promise<void> {
  await expect.poll(() => costOf(page), PATIENCE).toMatch(part);
}
