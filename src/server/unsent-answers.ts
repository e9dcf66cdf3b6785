import type { Socket } from 'node:net';
import { createHeldTogether } from './held-together.ts';

/** Answers that are whole, and that their clients have not taken yet; of each connection one at a time. */
export interface UnsentAnswers {
  /** Once an answer is whole. What the machine took at once needs no watching. */
  watch(socket: Socket): void;
  /** Once it is taken, or its connection closed. @returns whether it was watched. */
  forget(socket: Socket): boolean;
}

export interface UnsentAnswersOptions {
  /** How long nothing of an answer may be taken, in milliseconds. */
  readonly answerMs: number;
  /** What must be taken of it in each second besides, on the whole, in bytes. */
  readonly leastBytesPerSecond: number;
  /** How often it is looked for those that are late, in milliseconds. */
  readonly lookEveryMs: number;
  /** What all of them may hold together, in bytes. Default 256 MiB. */
  readonly mostBytes?: number;
}

/**
 * Cuts off whoever does not take an answer: when nothing of it is taken for a time; when it is not taken whole by a deadline,
 * since a read now and then would keep it for ever; and, the longest waiting first, when all of them hold too much.
 */
export function createUnsentAnswers(options: UnsentAnswersOptions): UnsentAnswers {
  const { answerMs, leastBytesPerSecond, lookEveryMs, mostBytes = 268_435_456 } = options;
  /** When each is late, by `performance.now()`. */
  const lateAtMs = new Map<Socket, number>();
  const held = createHeldTogether<Socket>(mostBytes, cut);
  let looking: NodeJS.Timeout | undefined;

  return {
    watch(socket) {
      const { writableLength: bytes } = socket;
      if (bytes === 0 || socket.destroyed) return;
      looking ??= setInterval(cutLate, lookEveryMs).unref();
      // Node cuts off a socket that is idle for so long, and counts what it sends as being busy.
      socket.setTimeout(answerMs);
      lateAtMs.set(socket, performance.now() + answerMs + (bytes / leastBytesPerSecond) * 1_000);
      held.hold(socket, bytes);
    },
    forget,
  };

  function forget(socket: Socket): boolean {
    held.release(socket);
    return lateAtMs.delete(socket);
  }

  function cut(socket: Socket): void {
    forget(socket);
    socket.destroy();
  }

  function cutLate(): void {
    const nowMs = performance.now();
    for (const [socket, atMs] of lateAtMs) if (atMs < nowMs) cut(socket);
    if (lateAtMs.size > 0) return;
    clearInterval(looking);
    looking = undefined;
  }
}
