import type { IncomingMessage } from 'node:http';
import type { Log } from '../common/log.ts';
import { isForeignHost } from '../server/http/host-check.ts';
import { HTML, JSON_TYPE, preferredType } from '../server/http/media-type.ts';
import { SECURITY_HEADERS } from '../server/http/response-headers.ts';
import { closeUnread } from '../server/http/unread-request.ts';
import type { RequestHandler } from '../server/listener.ts';
import { quotaPage } from './quota-page.ts';
import type { AdminSources, Metrics } from './metrics.ts';
import { QUOTA_RELOAD_SOURCE } from './quota-reload.ts';

const TEXT_TYPE = 'text/plain';

/** Serves `/metrics` for Prometheus and `/quota` for people. It names callers by their hashes, and must not be public. */
export function createAdmin(sources: AdminSources, metrics: Metrics, log: Log): RequestHandler {
  return async (request, response) => {
    const [status, type, body] = await pageOf(request).catch((error: unknown) => {
      log.error({ err: error }, 'could not make an admin page');
      return [500, TEXT_TYPE, 'petql failed unexpectedly; the log says why.\n'] as const;
    });

    closeUnread(request, response);
    response.writeHead(status, { ...HEADERS, 'content-type': type, 'content-length': Buffer.byteLength(body) });
    response.end(body);
  };

  async function pageOf(request: IncomingMessage): Promise<readonly [status: number, type: string, body: string]> {
    const { method, url = '/' } = request;
    if (isForeignHost(request)) return [421, TEXT_TYPE, 'Expected a local name or an IP address as Host.\n'];
    if (method !== 'GET' && method !== 'HEAD') return [405, TEXT_TYPE, 'Method not allowed; use GET.\n'];

    const [path] = url.split('?');
    if (path === '/metrics') return [200, metrics.contentType, await metrics.text(sources)];
    if (path !== '/quota' && path !== '/quota/') return [404, TEXT_TYPE, 'Not found. Try /metrics or /quota.\n'];
    if (wantsJson(request)) return [200, 'application/json', JSON.stringify((await sources.callers.report()).keys)];
    return [200, 'text/html; charset=utf-8', await quotaPage(sources, await metrics.totals(), metrics.lastHour())];
  }
}

function wantsJson({ headers: { accept = '' } }: IncomingMessage): boolean {
  return preferredType(accept, [HTML, JSON_TYPE]) === JSON_TYPE;
}

const HEADERS = {
  ...SECURITY_HEADERS,
  'cache-control': 'no-store',
  'content-security-policy':
    `default-src 'none'; script-src ${QUOTA_RELOAD_SOURCE}; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
} as const;
