import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import { held } from '../held.ts';
import type { CallerView } from '../caller/callers.ts';
import type { Health } from '../server/health.ts';
import type { RequestHandler } from '../server/listener.ts';
import { hasReboundName } from '../server/rebound-name.ts';
import { BUDGET_SCRIPT, BUDGET_STYLE, budgetPage, budgetTable } from './budget-page.ts';
import type { Metrics } from './metrics.ts';

export interface AdminOptions {
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  views(): readonly CallerView[];
  health(): Health;
  readonly clock: Pick<Clock, 'elapsed'>;
}

/** How often an open page is told how things stand. */
const EVERY_MS = 1_000;
/** Pages that are told at a time; a page more shows what it was loaded with. */
const MOST_PAGES = 20;

/**
 * For operators alone: `/metrics` for Prometheus, `/budget` for people. It is to be served where the public does not come;
 * it shows no API key, and callers by their keyed hashes.
 */
export function createAdmin({ metrics, views, health, clock }: AdminOptions): RequestHandler {
  // The same for all pages.
  const table = held(EVERY_MS / 2, clock, () => budgetTable(views(), health()));
  let pages = 0;

  return async (request, response) => {
    try {
      await answer(request, response);
    } catch {
      if (!response.headersSent) response.writeHead(500);
      response.end();
    }
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '/' } = request;
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    if (hasReboundName(request)) return send(response, 421, 'text/plain', 'On loopback, ask for it as localhost.\n');
    if (method !== 'GET' && method !== 'HEAD') return send(response, 405, 'text/plain', 'Only GET is of use here.\n');
    switch (url.split('?')[0]) {
      case '/metrics':
        return send(response, 200, metrics.contentType, await metrics.text());
      case '/budget':
        return send(response, 200, 'text/html; charset=utf-8', budgetPage(await table()));
      case '/budget/':
        // What the page asks for is relative to its own address.
        return void response.writeHead(308, { location: '../budget' }).end();
      case '/budget/script.js':
        return send(response, 200, 'text/javascript; charset=utf-8', BUDGET_SCRIPT);
      case '/budget/style.css':
        return send(response, 200, 'text/css; charset=utf-8', BUDGET_STYLE);
      case '/budget/events':
        return stream(response);
      default:
        return send(response, 404, 'text/plain', 'Here are /metrics and /budget.\n');
    }
  }

  function stream(response: ServerResponse): void {
    if (pages >= MOST_PAGES) return send(response, 503, 'text/plain', 'Too many pages are open.\n');
    pages += 1;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const tell = async () => {
      const data = JSON.stringify(await table());
      // A page that does not read on gets no more to read.
      if (!response.writableNeedDrain) response.write(`data: ${data}\n\n`);
    };
    void tell();
    const timer = setInterval(() => void tell(), EVERY_MS).unref();
    response.once('close', () => {
      clearInterval(timer);
      pages -= 1;
    });
  }
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) }).end(body);
}

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;
