import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { httpOrigin } from '../http-origin.ts';

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

/** Bounds the memory of request bodies: connections times `maxBodyBytes`. */
const MAX_CONNECTIONS = 5_000;

export type Listener = Awaited<ReturnType<typeof listen>>;

/**
 * Serves a request handler on a port.
 *
 * @throws Error of node:net when it cannot listen there.
 */
export async function listen(handler: RequestHandler, { host, port, idleMs = IDLE_MS }: ListenOptions) {
  const server = createServer(OPTIONS, handler);
  server.timeout = idleMs;
  server.maxConnections = MAX_CONNECTIONS;
  const pending = new Set<ServerResponse>();
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive &&= server.listening;
    pending.add(response);
    response.once('close', () => pending.delete(response));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  return {
    /** The origin that it can be reached at, such as http://127.0.0.1:4000. */
    origin: httpOrigin(server),
    /** Closes idle connections, and the others with their response, or after `graceMs`. */
    stop: (graceMs: number) =>
      new Promise<void>((resolve) => {
        const grace = setTimeout(() => server.closeAllConnections(), graceMs);
        for (const response of pending) response.shouldKeepAlive = false;
        server.close(() => {
          clearTimeout(grace);
          resolve();
        });
      }),
  };
}
