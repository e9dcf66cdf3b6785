import { connect } from 'node:net';

/** What came over a connection, byte for byte, and how it ended. */
export interface RawExchange {
  readonly head: string;
  readonly body: Buffer;
  /** A connection that was reset, rather than closed. */
  readonly reset: boolean;
}

/** Sends one GET with the Free demo key and takes whatever comes, since a client of HTTP hides how a connection ends. */
export function rawGet(url: string): Promise<RawExchange> {
  const { hostname, port, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let reset = false;
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `GET ${pathname}${search} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer demo-free\r\nConnection: close\r\n\r\n`,
      );
    });
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET') reset = true;
      else reject(error);
    });
    socket.on('close', () => {
      const bytes = Buffer.concat(chunks);
      const end = bytes.indexOf('\r\n\r\n');
      resolve({
        head: bytes.toString('latin1', 0, Math.max(end, 0)),
        body: bytes.subarray(end < 0 ? 0 : end + 4),
        reset,
      });
    });
  });
}
