import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  readonly durationMs: number;
  /** What the connection with this number sends as its request with that number. */
  request(connection: number, count: number): Buffer;
}

export interface LoadResult {
  readonly operations: number;
  readonly seconds: number;
  /** Ascending, in milliseconds. */
  readonly latenciesMs: Float64Array;
  /** The first answer's body. */
  readonly body: string;
}

/**
 * Sends requests on so many connections, on each the next one when the last is answered. Plain sockets: a client that makes
 * an object of each answer would be slower than some of what it measures.
 *
 * @throws Error when an answer is not a 200, or holds GraphQL errors where that is looked at: in the first of a connection.
 */
export async function load({ port, connections, durationMs, request }: LoadOptions): Promise<LoadResult> {
  const latencies: number[] = [];
  let body = '';
  const startMs = performance.now();
  const endMs = startMs + durationMs;
  await Promise.all(Array.from({ length: connections }, (_, connection) => drive(connection)));
  const seconds = (performance.now() - startMs) / 1000;
  return { operations: latencies.length, seconds, latenciesMs: Float64Array.from(latencies).toSorted(), body };

  async function drive(connection: number): Promise<void> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect');
    let sentMs = performance.now();
    let count = 0;
    try {
      await eachAnswer(
        socket,
        () => {
          sentMs = performance.now();
          socket.write(request(connection, count));
        },
        (text) => {
          const nowMs = performance.now();
          latencies.push(nowMs - sentMs);
          count += 1;
          if (text) {
            if (text.includes('"errors"')) throw new Error(`an answer with errors: ${text.slice(0, 400)}`);
            body ||= text;
          }
          return nowMs < endMs;
        },
      );
    } finally {
      socket.destroy();
    }
  }
}

/** @param onAnswer gets the first answer's body and '' for later ones, and says whether to go on. */
function eachAnswer(socket: Socket, send: () => void, onAnswer: (text: string) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    let first = true;
    socket.on('error', reject).on('close', () => reject(new Error('the connection was closed')));
    socket.on('data', (chunk) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      const headersEnd = received.indexOf('\r\n\r\n');
      if (headersEnd < 0) return;
      const bodyStart = headersEnd + 4;
      const head = received.toString('latin1', 0, headersEnd).toLowerCase();
      if (!isWhole(received, head, bodyStart)) return;
      const text = first || !head.startsWith('http/1.1 200') ? received.toString('utf8', bodyStart) : '';
      first = false;
      received = Buffer.alloc(0);
      try {
        if (!head.startsWith('http/1.1 200')) throw new Error(`${head.slice(0, 60)}: ${text.slice(0, 400)}`);
        if (onAnswer(text)) send();
        else resolve();
      } catch (error) {
        reject(error);
      }
    });
    send();
  });
}

function isWhole(received: Buffer, head: string, bodyStart: number): boolean {
  const at = head.indexOf('content-length: ');
  if (at >= 0) return received.length >= bodyStart + Number.parseInt(head.slice(at + 16, at + 28), 10);
  return received.length >= bodyStart + 5 && received.toString('latin1', received.length - 5) === '0\r\n\r\n';
}
