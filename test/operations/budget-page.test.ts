import { expect, test } from 'vitest';
import { startBrowser } from '../support/browser.ts';
import { startGateway } from '../support/start-gateway.ts';

test('in a real browser the page shows who calls as they call, from petql alone', async ({ skip }) => {
  const browser = await startBrowser();
  if (!browser) return skip('no browser starts on this machine');
  try {
    await using gateway = await startGateway({ gateway: { admin: true } });
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', ({ message }) => complaints.push(message));
    page.on('request', (request) => request.url().startsWith(gateway.adminOrigin) || complaints.push(request.url()));
    await page.goto(`${gateway.adminOrigin}/budget`);
    await page.getByText('Nobody has called yet.').waitFor();
    await page.getByText('Live.').waitFor();
    await gateway.query('{ pets { id } }');
    await page.getByText('1 of 60').waitFor();
    gateway.sandbox.setFault(() => ({ status: 429, headers: { 'retry-after': '30' } }));
    await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache', prefer: 'wait=1' } });
    await page.getByText(/closed until/).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(1);
    expect(await page.locator('tbody code').innerText()).toMatch(/^[\w-]{32}$/);
    expect(complaints).toEqual([]);
  } finally {
    await browser.close();
  }
});

test('only GET is answered, and nothing but the metrics and the page is there', async () => {
  await using gateway = await startGateway({ gateway: { admin: true } });
  const status = async (path: string, method = 'GET') => (await fetch(gateway.adminOrigin + path, { method })).status;
  expect(await status('/budget')).toBe(200);
  expect(await status('/budget', 'POST')).toBe(405);
  expect(await status('/graphql')).toBe(404);
  const { headers } = await fetch(`${gateway.adminOrigin}/budget`);
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
});
