/** Bytes that come in pieces, in one block of memory. */
export interface GrowingBuffer {
  add(piece: Uint8Array): void;
  /** All that came: a view, which stays as it is when more comes. */
  bytes(): Buffer;
  /** What it takes in memory, in bytes. */
  readonly capacity: number;
}

export interface GrowingBufferOptions {
  /** Where doubling ends, in bytes; what comes beyond is kept all the same. */
  readonly mostBytes: number;
  /** What the first piece is given room for at least, in bytes. Default 16384. */
  readonly firstBytes?: number;
}

const NO_BYTES = Buffer.alloc(0);

/**
 * Copies what comes. A piece that is kept takes some hundred bytes besides its own, be it of one byte alone, and can be a
 * view of all that was read from a socket with it.
 */
export function createGrowingBuffer({ mostBytes, firstBytes = 16_384 }: GrowingBufferOptions): GrowingBuffer {
  let buffer = NO_BYTES;
  let length = 0;
  return {
    add(piece) {
      const needed = length + piece.length;
      if (needed > buffer.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(2 * buffer.length, mostBytes), firstBytes));
        buffer.copy(larger, 0, 0, length);
        buffer = larger;
      }
      buffer.set(piece, length);
      length = needed;
    },
    bytes: () => buffer.subarray(0, length),
    get capacity() {
      return buffer.length;
    },
  };
}
