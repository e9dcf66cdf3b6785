import type { RequestHandler } from './listener.ts';
import { hasReboundName } from './rebound-name.ts';

/** Whether only this machine can reach a listener on this host. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/**
 * For a listener on loopback whose visitors all spend the server's key: lets nobody ask under a name that is not this
 * machine's own, or a page that has led its name there could read and add animals in a visitor's browser. A listener that
 * others can reach has names that its owner chose, and proxies that pass them on.
 *
 * @param origins whose names are good too, such as `https://pets.example` of a proxy on this machine; `*` for all names.
 */
export function underOwnNames(handler: RequestHandler, origins: readonly string[]): RequestHandler {
  if (origins.includes('*')) return handler;
  const hosts = new Set(origins.map((origin) => new URL(origin).host));
  return (request, response) => {
    const { url = '', headers } = request;
    const isGood = !hasReboundName(request) || hosts.has(headers.host?.toLowerCase() ?? '');
    // Health spends nothing, and is asked for under all kinds of names.
    if (isGood || HEALTH.test(url)) return handler(request, response);
    response.writeHead(421, { 'content-type': 'text/plain', connection: 'close' });
    return response.end(MISDIRECTED);
  };
}

const HEALTH = /^\/health\/(?:live|ready)(?:\?|$)/;

const MISDIRECTED =
  'With a server-side API key, expected the name localhost or 127.0.0.1 here. A proxy on the same machine sends one of them ' +
  'as Host, or --cors-origins (CORS_ORIGINS) lists the origin of its pages.\n';
