import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { httpOrigin } from '../settings/http-origin.ts';

/** Sends the response, at once or later. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** How long nothing may come or go on a connection, in milliseconds. Default 75,000; more where responses may wait longer. */
  readonly idleMs?: number;
}

const IDLE_MS = 75_000;

const OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  // Node's default of 30 s would let slow clients stay four times as long.
  connectionsCheckingInterval: 2_000,
  // Longer than the minute for which most load balancers keep a connection, so that none closes under a request.
  keepAliveTimeout: 65_000,
  // Node would keep the first of two API keys.
  joinDuplicateHeaders: true,
};

/** Bounds the memory of headers and small bodies. Large bodies have a bound of their own. */
const MAX_CONNECTIONS = 5_000;

export interface Listener {
  /** The origin that it can be reached at, such as http://127.0.0.1:4000. */
  readonly origin: string;
  /**
   * Ends connections with their responses from now on. Takes new ones for `delayMs` (0), while load balancers learn of the stop;
   * then closes idle ones, and the others with their response or after `graceMs`.
   */
  readonly stop: (times: { readonly delayMs?: number; readonly graceMs: number }) => Promise<void>;
}

/**
 * Serves a request handler on a port.
 *
 * @throws Error of node:net when it cannot listen there.
 */
export async function listen(
  handler: RequestHandler,
  { host, port, idleMs = IDLE_MS }: ListenOptions,
): Promise<Listener> {
  const server = createServer(OPTIONS, (request, response) =>
    hasOneHost(request) ? handler(request, response) : response.writeHead(400, { connection: 'close' }).end(),
  );
  server.timeout = idleMs;
  server.maxConnections = MAX_CONNECTIONS;
  // Node.js before 24.18.1 drops those after the thousandth, and would hide the second of two API keys. All have 16 KB.
  server.maxHeadersCount = 0;

  const pending = new Set<ServerResponse>();
  let isStopping = false;
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive &&= !isStopping;
    pending.add(response);
    response.once('close', () => pending.delete(response));
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  return { origin: httpOrigin(server), stop };

  async function stop({ delayMs = 0, graceMs }: { readonly delayMs?: number; readonly graceMs: number }) {
    isStopping = true;
    for (const response of pending) response.shouldKeepAlive = false;
    if (delayMs > 0) await setTimeout(delayMs);

    const closed = new Promise((resolve) => void server.close(resolve));
    await Promise.race([closed, setTimeout(graceMs, undefined, { ref: false })]);
    server.closeAllConnections();
    await closed;
  }
}

/** Node takes several Host lines, whose values it joins (RFC 9112, section 3.2). */
function hasOneHost({ headers }: IncomingMessage): boolean {
  return headers.host?.includes(',') !== true;
}
