import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { httpOrigin, listenAddress } from '../settings/http-origin.ts';
import { ClientConnections } from './connections.ts';
import type { HttpCounts } from './http-counts.ts';
import { CLIENT_IDLE_MS, CLIENT_KEEP_ALIVE_MS, HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from '../common/times.ts';

/**
 * Sends the response, at once or later.
 *
 * @param next goes on with the other routes of a framework.
 */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse, next?: () => unknown) => unknown;

interface ListenerOptions {
  /** `::` for all addresses, as far as the machine has IPv6. */
  readonly host: string;
  readonly port: number;
  /** How long nothing may come or go on a connection, in milliseconds. Default 75,000; more where responses may wait longer. */
  readonly idleMs?: number;
  /** How long a connection is kept for its next request, in milliseconds. Default 65,000. */
  readonly keepAliveMs?: number;
  /** How long the headers of a request may take, in milliseconds. Default 10,000. */
  readonly headersTimeoutMs?: number;
  readonly counts?: HttpCounts | undefined;
  /** Default 5,000, which bounds the memory of headers and small bodies. Large bodies have a bound of their own. */
  readonly maxConnections?: number;
}

const SERVER_OPTIONS = {
  // Node's default of 30 s would let slow clients stay four times as long.
  connectionsCheckingInterval: 2_000,
  // Node would keep the first of two API keys.
  joinDuplicateHeaders: true,
};

const MAX_CLIENT_CONNECTIONS = 5_000;

export interface Listener {
  /** The origin that it can be reached at, such as http://127.0.0.1:4000. */
  readonly origin: string;
  /**
   * Ends connections with their responses from now on. Takes new ones for `delayMs` (0), while load balancers learn of the stop;
   * then closes those without a request, and the others with their response or after `graceMs`.
   */
  readonly stop: (times: { readonly delayMs?: number; readonly graceMs: number }) => Promise<void>;
}

/**
 * Serves a request handler on a port.
 *
 * @throws Error of node:net when it cannot listen there.
 */
export async function listen(handler: RequestHandler, options: ListenerOptions): Promise<Listener> {
  const {
    host,
    port,
    counts,
    idleMs = CLIENT_IDLE_MS,
    keepAliveMs = CLIENT_KEEP_ALIVE_MS,
    headersTimeoutMs = HEADERS_TIMEOUT_MS,
    maxConnections = MAX_CLIENT_CONNECTIONS,
  } = options;
  const requestTimeout = Math.max(REQUEST_TIMEOUT_MS, headersTimeoutMs);
  const timeouts = { keepAliveTimeout: keepAliveMs, headersTimeout: headersTimeoutMs, requestTimeout };
  const server = createServer({ ...SERVER_OPTIONS, ...timeouts });
  server.timeout = idleMs;
  server.maxConnections = maxConnections;
  // Node.js before 24.18.1 drops those after the thousandth, and would hide the second of two API keys. All have 16 KB.
  server.maxHeadersCount = 0;

  const connections = new ClientConnections(server, counts);
  server.on('request', (request, response) => {
    // What comes behind the last response of a connection is not run (RFC 9112, section 9.6).
    if (connections.isEnding(request.socket)) return;
    if (hasOneHost(request)) handler(request, response);
    else rejectRequest(response, 400);
  });
  // Node would keep the connection, whatever the request's body is.
  server.on('checkExpectation', (_request, response: ServerResponse) => rejectRequest(response, 417));

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(listenAddress(host, port), resolve);
  });
  return { origin: httpOrigin(server), stop };

  async function stop({ delayMs = 0, graceMs }: { readonly delayMs?: number; readonly graceMs: number }) {
    connections.drain();
    if (delayMs > 0) await setTimeout(delayMs);

    const closed = new Promise((resolve) => void server.close(resolve));
    connections.closeUnused();
    await Promise.race([closed, setTimeout(graceMs, undefined, { ref: false })]);
    server.closeAllConnections();
    await closed;
  }
}

function rejectRequest(response: ServerResponse, status: number): void {
  response.shouldKeepAlive = false;
  response.writeHead(status).end();
}

/** Node takes several Host lines, whose values it joins (RFC 9112, section 3.2). */
function hasOneHost({ headers }: IncomingMessage): boolean {
  return headers.host?.includes(',') !== true;
}
