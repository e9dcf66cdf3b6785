import type { Socket } from 'node:net';

/**
 * Bytes that are parsed at a time. Past its limit for headers, undici makes an error of each header that is left of what it is
 * given, though the first has closed the connection: of 64 KiB in one piece there are 8,000, and 100 ms in which nothing else
 * is done.
 */
const MOST_BYTES = 1_024;

/** Hands out what has come in small pieces, and nothing more once the socket is closed. */
export function smallReads(socket: Socket): Socket {
  const read = socket.read.bind(socket);
  socket.read = (size) => {
    // A closed socket still hands out what it holds.
    if (socket.destroyed) return null;
    return read(size ?? (Math.min(socket.readableLength, MOST_BYTES) || undefined));
  };
  return socket;
}
