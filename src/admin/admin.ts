import type { IncomingMessage, ServerResponse } from 'node:http';
import { isForeignHost } from '../server/http/host-check.ts';
import type { RequestHandler } from '../server/listener.ts';
import { quotaPage } from './quota-page.ts';
import type { AdminSources, Metrics } from './metrics.ts';

/** `/metrics` for Prometheus and `/quota` for people. It shows callers by keyed hashes, and must not be public. */
export function createAdmin(sources: AdminSources, metrics: Metrics): RequestHandler {
  return (request, response) => {
    respond(request, response).catch(() => {
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  };

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '/' } = request;
    const send = (status: number, type: string, body: string) => {
      response.writeHead(status, { ...HEADERS, 'content-type': type, 'content-length': Buffer.byteLength(body) });
      response.end(body);
    };
    if (isForeignHost(request))
      return send(421, 'text/plain', 'Expected the name localhost or 127.0.0.1 on loopback.\n');
    if (method !== 'GET' && method !== 'HEAD') return send(405, 'text/plain', 'Method not allowed; use GET.\n');
    switch (url.split('?')[0]) {
      case '/metrics':
        return send(200, metrics.contentType, await metrics.text());
      case '/quota':
      case '/quota/':
        return send(200, 'text/html; charset=utf-8', await quotaPage(sources, metrics.totals));
      default:
        return send(404, 'text/plain', 'Not found. Try /metrics or /quota.\n');
    }
  }
}

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;
