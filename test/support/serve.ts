import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

export interface Served extends AsyncDisposable {
  readonly origin: string;
}

/** Serves a request handler on a free port of this machine. */
export async function serve(handler: RequestListener): Promise<Served> {
  const server = createServer(handler);
  // Longer than petql keeps its own connections, so that none is closed under a call.
  server.keepAliveTimeout = 120_000;
  return {
    origin: `http://127.0.0.1:${await portOf(server)}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Serves connections on a free port of this machine. */
export async function servePort(handler: (socket: Socket) => void): Promise<AsyncDisposable & { port: number }> {
  const sockets = new Set<Socket>();
  const server = createSocketServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    handler(socket);
  });
  return {
    port: await portOf(server),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A port on which nothing listens now. */
export async function freePort(): Promise<number> {
  await using server = await servePort(() => {});
  return server.port;
}
