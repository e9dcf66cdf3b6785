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

export interface LoadResult {
  readonly operations: number;
  readonly seconds: number;
  /** Of the first response. */
  readonly body: string;
}

/**
 * Sends requests on so many connections, the next one when the last is answered, and at least one on each. Plain sockets:
 * a client that parses each response would be slower than some servers.
 *
 * @throws Error where a response is not a 200, or the first one of a connection has GraphQL errors.
 */
export async function load({ port, connections, durationMs, requests }: LoadOptions): Promise<LoadResult> {
  let operations = 0;
  let body = '';
  const startMs = performance.now();
  await Promise.all(Array.from({ length: connections }, run));
  return { operations, seconds: (performance.now() - startMs) / 1_000, body };

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
function receive(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const onData = (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (isWhole(received)) settle(() => resolve(received));
    };
    const onClose = () => settle(() => reject(new Error('the server closed the connection')));
    socket.on('data', onData).on('close', onClose);

    function settle(then: () => void): void {
      socket.off('data', onData).off('close', onClose);
      then();
    }
  });
}

function isWhole(received: string): boolean {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, headEnd))?.[1];
  return length === undefined ? received.endsWith('\r\n0\r\n\r\n') : received.length >= headEnd + 4 + Number(length);
}
