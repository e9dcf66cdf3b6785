import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Served extends AsyncDisposable {
  readonly origin: string;
}

/** Serves a request handler on a free port of this machine. */
export async function serve(handler: RequestListener): Promise<Served> {
  const server = createServer(handler).listen(0, '127.0.0.1');
  // Longer than petql keeps its own connections, so that none is closed under a call.
  server.keepAliveTimeout = 120_000;
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A port on which nothing listens now. */
export async function freePort(): Promise<number> {
  await using server = await serve(() => {});
  return Number(new URL(server.origin).port);
}
