import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** A request whose body does not come to its end. */
export interface SlowBody {
  /** What petql has answered so far. */
  readonly response: string;
  /** Resolves when the connection is over, whoever ended it. */
  readonly closed: Promise<unknown>;
  /** Sends more of the body. */
  readonly send: (bytes: Buffer | string) => void;
  /** Leaves. */
  readonly destroy: () => void;
}

/** Sends this part of a body of `length` bytes, or in chunks without a length, and then nothing. */
export function startSlowBody(endpoint: string, part: Buffer | string, length?: number): SlowBody {
  const { hostname, port, pathname } = new URL(endpoint);
  const socket: Socket = connect(Number(port), hostname);
  let response = '';
  socket.setEncoding('latin1').on('data', (text: string) => (response += text));
  socket.on('error', () => {});
  const framing = length === undefined ? 'transfer-encoding: chunked' : `content-length: ${length}`;
  socket.write(`POST ${pathname} HTTP/1.1\r\nhost: petql\r\ncontent-type: application/json\r\n${framing}\r\n\r\n`);
  socket.write(part);
  return {
    get response() {
      return response;
    },
    closed: new Promise((resolve) => void socket.once('close', resolve)),
    send: (bytes) => void socket.write(bytes),
    destroy: () => void socket.destroy(),
  };
}
