import { expect, test } from 'vitest';
import { listen } from '../../src/server/listener.ts';
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

test.each(['', '/internal', '/a/b'])(
  'mounted at %j, as frameworks do it, the page finds its style, its script and what it shows live',
  async (prefix) => {
    await using gateway = await startGateway({ gateway: { admin: true } });
    const { origin, stop } = await listen(
      (request, response) => {
        const { url = '/' } = request;
        if (!url.startsWith(prefix)) return response.writeHead(404).end();
        request.url = url.slice(prefix.length);
        return gateway.gateway.admin?.(request, response);
      },
      { host: '127.0.0.1', port: 0 },
    );
    for (const path of ['/budget', '/budget/']) {
      const page = await fetch(origin + prefix + path);
      const html = await page.text();
      const [style, script] = [...html.matchAll(/(?:href|src)="([^":]+)"/g)].map(([, address = '']) => address);
      for (const [address = '', type] of [
        [style, 'text/css'],
        [script, 'text/javascript'],
      ]) {
        const part = await fetch(new URL(address, page.url));
        expect([address, part.status]).toEqual([address, 200]);
        expect(part.headers.get('content-type')).toContain(type);
      }
      const source = await (await fetch(new URL(script ?? '', page.url))).text();
      const live = /new EventSource\('([^']+)'\)/.exec(source)?.[1] ?? '';
      const events = await fetch(new URL(live, page.url));
      expect(events.headers.get('content-type')).toBe('text/event-stream');
      await events.body?.cancel();
    }
    await stop(0);
  },
);
