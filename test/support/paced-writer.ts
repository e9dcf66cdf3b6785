import type { Socket } from 'node:net';

/** Writes to a socket in order, each piece when its time has come. */
export interface PacedWriter {
  /** @param bytesPerSecond as fast as it goes where it is not given. */
  write(bytes: Buffer, latencyMs?: number, bytesPerSecond?: number): void;
  /** Does something in its turn, once what was written before is on its way. */
  inTurn(act: () => void): void;
  /** Closes this side of the connection in its turn. */
  end(): void;
}

/** So many pieces a second, where the pace allows more than a byte for each. */
const PIECES_PER_SECOND = 20;

export function createPacedWriter(socket: Socket): PacedWriter {
  /** When the last piece leaves: bytes keep their order when a delay is shortened. */
  let lastMs = 0;
  const waiting: (() => unknown)[] = [];

  return {
    write(bytes, latencyMs = 0, bytesPerSecond = Infinity) {
      const size = Math.max(1, Math.min(bytes.length, Math.floor(bytesPerSecond / PIECES_PER_SECOND)));
      let firstMs = performance.now() + latencyMs;
      for (let at = 0; at < bytes.length; at += size) {
        const piece = bytes.subarray(at, at + size);
        schedule(firstMs, () => socket.writable && socket.write(piece));
        firstMs = lastMs + (piece.length / bytesPerSecond) * 1_000;
      }
    },
    inTurn: (act) => schedule(0, act),
    end: () => schedule(0, () => socket.end()),
  };

  function schedule(atMs: number, act: () => unknown): void {
    lastMs = Math.max(lastMs, atMs);
    const delayMs = lastMs - performance.now();
    // At once where nothing is before it, so that a proxy without a fault costs no turn of the event loop.
    if (delayMs <= 0 && waiting.length === 0) return void act();
    waiting.push(act);
    // What is first in the queue, since timers of nearly the same moment may change places.
    setTimeout(() => waiting.shift()?.(), delayMs).unref();
  }
}
