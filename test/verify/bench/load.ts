import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  readonly durationMs: number;
  /** Sent in turn, by all connections together. */
  readonly requests: readonly Buffer[];
}

/**
 * Sends requests on so many connections, the next one when the last is answered, and at least one on each. Plain sockets:
 * a client that parses each response would be slower than some servers.
 *
 * @returns how many were sent, and the body of a response.
 * @throws Error where a response is not a 200, or the first one of a connection has GraphQL errors.
 */
export async function load({
  port,
  connections,
  durationMs,
  requests,
}: LoadOptions): Promise<{ readonly operations: number; readonly body: string }> {
  let operations = 0;
  let body = '';
  const startMs = performance.now();
  await Promise.all(Array.from({ length: connections }, run));
  return { operations, body };

  async function run(): Promise<void> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect');
    try {
      for (let first = true; first || performance.now() < startMs + durationMs; first = false) {
        const received = receive(socket);
        socket.write(requests[operations % requests.length] ?? '');
        operations += 1;
        const response = await received;
        if (!response.startsWith('HTTP/1.1 200')) throw new Error(response);
        if (!first) continue;
        if (response.includes('"errors":[{')) throw new Error(response);
        body ||= response.slice(response.indexOf('\r\n\r\n') + 4);
      }
    } finally {
      socket.destroy();
    }
  }
}

/** Resolves with one whole response, with its head. */
async function receive(socket: Socket): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let received = '';
  const onData = (chunk: Buffer) => {
    received += chunk.toString('latin1');
    if (isWhole(received)) resolve(received);
  };
  const onClose = () => reject(new Error('the server closed the connection'));
  socket.on('data', onData).once('close', onClose);
  return promise.finally(() => socket.off('data', onData).off('close', onClose));
}

function isWhole(received: string): boolean {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, headEnd))?.[1];
  return length === undefined ? received.endsWith('\r\n0\r\n\r\n') : received.length >= headEnd + 4 + Number(length);
}
