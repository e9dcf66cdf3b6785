import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from '../listener.ts';

/** Whether only this machine can reach a listener on this host. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/**
 * Whether a request came to this machine's loopback address under a foreign name. A browser sends it when the name of a
 * page resolves to 127.0.0.1 (DNS rebinding), so that the page can read the responses.
 */
export function isForeignHost({ headers: { host }, socket }: Pick<IncomingMessage, 'headers' | 'socket'>): boolean {
  return host !== undefined && LOOPBACK_ADDRESS.test(socket.localAddress ?? '') && !LOOPBACK_NAME.test(host);
}

const LOOPBACK_ADDRESS = /^(?:(?:::ffff:)?127\.|::1$)/;

/** No name below `localhost` resolves to anything else (RFC 6761, section 6.3). */
const LOOPBACK_NAME = /^(?:(?:[\w-]+\.)*localhost\.?|127(?:\.\d{1,3}){3}|\[::1\])(?::\d*)?$/i;

/**
 * Rejects foreign Host headers on a loopback listener whose clients all spend the server's key.
 *
 * @param origins whose names are accepted too, such as `https://pets.example` of a proxy on this machine; `*` for all names.
 */
export function withHostCheck(handler: RequestHandler, origins: readonly string[]): RequestHandler {
  if (origins.includes('*')) return handler;
  const hosts = new Set(origins.map((origin) => new URL(origin).host));
  return (request, response) => {
    const { url = '', headers } = request;
    const isAccepted = !isForeignHost(request) || hosts.has(headers.host?.toLowerCase() ?? '');
    // Health checks spend nothing and come under all kinds of names.
    if (isAccepted || HEALTH.test(url)) return handler(request, response);
    response.writeHead(421, { 'content-type': 'text/plain', connection: 'close' });
    return response.end(MISDIRECTED);
  };
}

const HEALTH = /^\/health\/(?:live|ready)(?:\?|$)/;

const MISDIRECTED =
  'With a server-side API key, expected the name localhost or 127.0.0.1 here. A proxy on the same machine sends one of them ' +
  'as Host, or --cors-origins (CORS_ORIGINS) lists the origin of its pages.\n';
