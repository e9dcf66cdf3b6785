import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createSocketServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

export interface Served extends AsyncDisposable {
  readonly origin: string;
}

/** A certificate of 127.0.0.1, which nobody trusts by default, and its key. */
export const CERTIFICATE_FILE = fileURLToPath(new URL('localhost.pem', import.meta.url));

/** Serves a request handler on a free port of this machine. */
export async function serve(handler: RequestListener, protocol: 'http' | 'https' = 'http'): Promise<Served> {
  const pem = protocol === 'https' ? readFileSync(CERTIFICATE_FILE) : undefined;
  const server = pem ? createHttpsServer({ cert: pem, key: pem }, handler) : createServer(handler);
  // Longer than petql keeps its own connections, so that none is closed under a call.
  server.keepAliveTimeout = 120_000;
  return {
    origin: `${protocol}://127.0.0.1:${await portOf(server)}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Serves connections on a port of this machine; on a free one without `wanted`. */
export async function servePort(
  handler: (socket: Socket) => void,
  wanted = 0,
): Promise<AsyncDisposable & { port: number }> {
  const sockets = new Set<Socket>();
  const server = createSocketServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    handler(socket);
  });
  return {
    port: await portOf(server, wanted),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function portOf(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/**
 * A port on which nothing listens now, and of which the system makes no other use: it gives those from 32768 on to
 * connections and to servers that ask for any.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    try {
      await using server = await servePort(() => {}, randomInt(10_000, 32_768));
      return server.port;
    } catch {
      // Something listens there.
    }
  }
}
