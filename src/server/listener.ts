import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import type { Socket } from 'node:net';
import { httpOrigin } from '../http-origin.ts';

export interface Listener {
  /** The origin that it can be reached at, such as http://127.0.0.1:4000. */
  readonly origin: string;
  /** Rejects new connections and lets running requests finish, for `graceMs` at most; then closes them. */
  stop(graceMs: number): Promise<void>;
}

/** Sends the response, at once or later. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** How long nothing may come or go on a connection, in milliseconds. Default 75,000; more where responses may wait longer. */
  readonly idleMs?: number;
}

/** Longer than the minute for which most load balancers keep a connection, so that none closes under a request. */
const KEEP_ALIVE_MS = 65_000;
const IDLE_MS = 75_000;

const OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  // Node's default of 30 s would let slow clients stay four times as long.
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: KEEP_ALIVE_MS,
  // Node would keep the first of two API keys.
  joinDuplicateHeaders: true,
};

/** Bounds the memory of request bodies: connections times `maxBodyBytes`. */
const MAX_CONNECTIONS = 5_000;

/**
 * Serves a request handler on a port.
 *
 * @throws Error of node:net when it cannot listen there.
 */
export async function listen(handler: RequestHandler, options: ListenOptions): Promise<Listener> {
  const { host, port, idleMs = IDLE_MS } = options;
  const server = createServer(OPTIONS, handler);
  server.timeout = idleMs;
  server.maxConnections = MAX_CONNECTIONS;
  const closeIdle = trackConnections(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, resolve);
  });
  return {
    origin: httpOrigin(server),
    stop: (graceMs) =>
      new Promise((resolve) => {
        const grace = setTimeout(() => server.closeAllConnections(), graceMs);
        // That of http would cut off clients that have not taken the whole of a response yet.
        NetServer.prototype.close.call(server, () => {
          clearTimeout(grace);
          server.close();
          resolve();
        });
        closeIdle();
      }),
  };
}

/** @returns a function that closes connections without a request at once, and the others with their response. */
function trackConnections(server: Server): () => void {
  /** The bytes that were read when the last response was over; a connection that read more has begun a request. */
  const idle = new Map<Socket, number>();
  const pending = new Set<ServerResponse>();
  let isStopping = false;
  server.on('connection', (socket: Socket) => {
    idle.set(socket, 0);
    socket.once('close', () => idle.delete(socket));
  });
  server.prependListener('request', ({ socket }, response) => {
    idle.delete(socket);
    pending.add(response);
    if (isStopping) response.shouldKeepAlive = false;
    response.once('close', () => {
      pending.delete(response);
      if (isStopping) socket.end();
      else if (!socket.destroyed) idle.set(socket, socket.bytesRead);
    });
  });
  return () => {
    isStopping = true;
    for (const response of pending) response.shouldKeepAlive = false;
    for (const [socket, bytesRead] of idle) if (socket.bytesRead === bytesRead) socket.destroy();
  };
}
