import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
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
  const running = new Set<ServerResponse>();
  const server = createServer(
    { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 65_000 },
    (request, response) => {
      running.add(response);
      response.once('close', () => running.delete(response));
      handler(request, response);
    },
  );
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
        for (const response of running) response.shouldKeepAlive = false;
      }),
  };
}
