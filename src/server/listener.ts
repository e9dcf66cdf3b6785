import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import { httpOrigin } from '../http-origin.ts';
import { createConnections } from './connections.ts';
import { MOST_KEPT_HEADERS } from './too-many-headers.ts';

export interface Listener {
  /** The origin that it can be reached at, such as http://127.0.0.1:4000. */
  readonly origin: string;
  /** Refuses new connections and lets running requests finish, for `graceMs` at most; then cuts them. */
  stop(graceMs: number): Promise<void>;
}

/** Answers a request by itself, whenever it can. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** How long clients may take; for tests, which have less time. */
  readonly patience?: Patience;
}

/** In milliseconds, but for what is in bytes. */
export interface Patience {
  /** From a connection's start, or the last answer on it and a first byte, to the end of a request's headers. */
  readonly headersMs: number;
  /** To the end of its body. */
  readonly requestMs: number;
  /** How long nothing of an answer may be taken, once all of it is there. */
  readonly answerMs: number;
  /** What must be taken of it in each second besides, on the whole: bytes. */
  readonly leastBytesPerSecond: number;
  /** How often connections are looked through for those that took longer. */
  readonly lookEveryMs: number;
}

/** Node would look every 30 s, and so let whoever sends a byte now and then stay four times as long as it is said to. */
const PATIENCE: Patience = {
  headersMs: 10_000,
  requestMs: 30_000,
  answerMs: 30_000,
  // A slow mobile network; GraphiQL's script has a minute and a half so, zipped.
  leastBytesPerSecond: 20_000,
  lookEveryMs: 2_000,
};

/** Longer than the minute for which most balancers keep a connection, so that none is closed under a request. */
const KEEP_ALIVE_MS = 65_000;

/**
 * A few kilobytes each. One more is closed at once: without a bound they would take the last file descriptor, and then no
 * connection to the service, to Redis or to a file could be opened.
 */
const MOST_CONNECTIONS = 15_000;

/** What browsers and proxies send is far below. */
const MOST_HEADER_BYTES = 16_384;

/**
 * Serves a request handler on a port of its own, also where strangers can reach it: whoever is slow or comes in crowds is
 * cut off before it harms the others.
 *
 * @throws Error of node:net when it cannot listen there.
 */
export async function listen(
  handler: RequestHandler,
  { host, port, patience = PATIENCE }: ListenOptions,
): Promise<Listener> {
  const connections = createConnections(handler, patience);
  const server = createServer(
    {
      headersTimeout: patience.headersMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: patience.lookEveryMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MOST_HEADER_BYTES,
      // What Node refuses itself is answered out of turn, however many of them come, and nobody knows of its connection.
      requireHostHeader: false,
    },
    connections.answer,
  );
  server.on('checkExpectation', connections.answer);
  server.on('connection', connections.opened);
  server.maxConnections = MOST_CONNECTIONS;
  server.maxHeadersCount = MOST_KEPT_HEADERS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });

  return {
    origin: httpOrigin(server),
    stop: (graceMs) =>
      new Promise((resolve) => {
        const grace = setTimeout(() => server.closeAllConnections(), graceMs);
        // That of http would take those for idle whose clients have not taken the whole of an answer yet, and cut them off.
        NetServer.prototype.close.call(server, () => {
          clearTimeout(grace);
          // Nothing is left to close but what looks after slow clients.
          server.close();
          resolve();
        });
        connections.stop();
      }),
  };
}
