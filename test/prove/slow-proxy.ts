import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** Stands between petql and Redis, and lets every byte wait. */
export interface SlowProxy {
  readonly port: number;
  /** From now on, each way. */
  delay(ms: number): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startSlowProxy(target: URL): Promise<SlowProxy> {
  let delayMs = 0;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const redis = connect(Number(target.port), target.hostname);
    pass(client, redis);
    pass(redis, client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    delay(ms) {
      delayMs = ms;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  function pass(from: Socket, to: Socket): void {
    sockets.add(from);
    /** Bytes keep their order when the delay is shortened. */
    let last = 0;
    from.on('data', (bytes) => {
      last = Math.max(last, performance.now() + delayMs);
      setTimeout(() => to.writable && to.write(bytes), Math.max(0, last - performance.now()));
    });
    from.once('error', () => to.destroy());
    from.once('close', () => {
      sockets.delete(from);
      to.destroy();
    });
  }
}
