import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { HttpCounts } from '../http-counts.ts';
import type { RequestHandler } from '../listener.ts';
import { createCors } from './cors.ts';
import { isHealthPath } from './health.ts';
import { pathOf } from './http-message.ts';
import { targetPath } from './node-handler.ts';

/**
 * Whether a request came to this machine's loopback address under a foreign name. A browser sends it when the name of a
 * page resolves to 127.0.0.1 (DNS rebinding), so that the page can read the responses.
 */
export function isForeignHost({ headers: { host }, socket }: Pick<IncomingMessage, 'headers' | 'socket'>): boolean {
  return host !== undefined && LOOPBACK_ADDRESS.test(socket.localAddress ?? '') && !isLocalName(hostName(host));
}

const LOOPBACK_ADDRESS = /^(?:(?:::ffff:)?127\.|::1$)/;

interface HostSettings {
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
}

/**
 * Rejects requests under names that a page of any site can have, where all clients spend the server's key. It listens on any
 * address: a published port of a container is on the laptop's loopback too.
 */
export function withHostCheck(
  handler: RequestHandler,
  { allowedHosts, corsOrigins }: HostSettings,
  counts?: HttpCounts,
): RequestHandler {
  if ([...allowedHosts, ...corsOrigins].includes('*')) return handler;
  // The host of an app's origin is no name of petql.
  const origins = corsOrigins.filter((origin) => /^https?:/.test(origin)).map((origin) => new URL(origin).host);
  const cors = createCors({ corsOrigins });
  const allowed = new Set([...allowedHosts, ...origins].map(hostName));
  return (request, response) => {
    const { url = '', headers } = request;
    const name = hostName(headers.host ?? 'localhost');
    // Health checks come under all kinds of names.
    const isHealthCheck = isHealthPath(pathOf({ url: targetPath(url) }));
    if (isLocalName(name) || allowed.has(name) || isHealthCheck) return handler(request, response);
    counts?.recordMisdirected(name);
    response.shouldKeepAlive = false;
    const granted = cors(request);
    if (granted && request.method === 'OPTIONS') return response.writeHead(204, granted).end();
    response.writeHead(421, { ...granted, 'content-type': 'text/plain' });
    return response.end(MISDIRECTED);
  };
}

const MISDIRECTED =
  'With a server-side API key, expected a local name or an IP address as Host. ' +
  '--allowed-hosts (ALLOWED_HOSTS) lists the other names of petql.\n';

/** Returns the name of a Host header without its port. */
function hostName(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

/** Whether no public DNS server can make the name lead here: an address, a name without a dot, or a reserved domain. */
function isLocalName(name: string): boolean {
  return isIP(name.replaceAll(/^\[|\]$/g, '')) !== 0 || /^(?:[\w.-]+\.(?:localhost|local|internal)|[\w-]+)$/.test(name);
}
