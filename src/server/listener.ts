import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { httpOrigin } from '../http-origin.ts';

export interface Listener {
  /** The origin that it can be reached at, such as http://127.0.0.1:4000. */
  readonly origin: string;
  /** Refuses new connections and lets running requests finish, for `graceMs` at most; then cuts them. */
  stop(graceMs: number): Promise<void>;
}

/** Answers a request by itself, whenever it can. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Serves a request handler on a port of its own.
 *
 * @throws Error of node:net when it cannot listen there.
 */
export async function listen(
  handler: RequestHandler,
  { host, port }: { host: string; port: number },
): Promise<Listener> {
  // By connection, not a set of responses: V8's sets that many things pass through keep what has left them alive for long.
  const latest = new Map<Socket, ServerResponse>();
  const server = createServer(
    { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 65_000 },
    (request, response) => {
      latest.set(request.socket, response);
      handler(request, response);
    },
  );
  server.on('connection', (socket) => socket.once('close', () => latest.delete(socket)));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });

  return {
    origin: httpOrigin(server),
    stop: (graceMs) =>
      new Promise((resolve) => {
        const patience = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(patience);
          resolve();
        });
        for (const response of latest.values()) response.shouldKeepAlive = false;
      }),
  };
}
