import { writeSync } from 'node:fs';

/** Lines on their way to a file descriptor. */
export interface LogLines {
  /** Writes a line at once where there is room for it. Where there is none it waits, or is dropped where too much waits. */
  write(line: string): void;
  /** Waits until what waits is out, but no longer than two seconds: for the end of the process. */
  flushSync(): void;
}

/** What waits for room takes no more memory than this. */
const MOST_WAITING_BYTES = 1_048_576;
/** How often what waits is tried again. */
const RETRY_MS = 20;
/** How long the end of the process waits for whoever reads. */
const FLUSH_MS = 2_000;

/**
 * Lines that never wait for whoever reads them: a pipe that nobody reads is full after some hundred, and writing one more
 * would stop the whole process for good.
 *
 * @param fd must not block where it is a pipe or a socket. Where it fails, for want of room on a disk say, lines are dropped.
 * @param onDropped is told how many lines were dropped, as soon as one can be written again.
 */
export function createLogLines(fd: number, onDropped: (lines: number) => void): LogLines {
  const waiting: Buffer[] = [];
  let waitingBytes = 0;
  let dropped = 0;
  let fails = false;
  let retry: NodeJS.Timeout | undefined;

  return {
    write(text) {
      const line = Buffer.from(text);
      // Once lines were dropped none is kept until it can be said how many: what is read later has one gap, at its place.
      if (waiting.length > 0 && (dropped > 0 || waitingBytes + line.length > MOST_WAITING_BYTES)) {
        dropped += 1;
        return;
      }
      waitingBytes += line.length;
      if (waiting.push(line) === 1) writeWaiting();
    },
    flushSync() {
      const endAtMs = performance.now() + FLUSH_MS;
      writeWaiting();
      while (waiting.length > 0 && performance.now() < endAtMs) {
        sleepSync(RETRY_MS);
        writeWaiting();
      }
    },
  };

  function writeWaiting(): void {
    let done = 0;
    for (const line of waiting) {
      const written = put(line);
      waitingBytes -= written;
      if (written < line.length) {
        waiting[done] = line.subarray(written);
        break;
      }
      done += 1;
    }
    waiting.splice(0, done);
    if (waiting.length > 0) retry ??= setTimeout(writeAgain, RETRY_MS).unref();
    else if (dropped > 0 && !fails) tellDropped();
  }

  function writeAgain(): void {
    retry = undefined;
    writeWaiting();
  }

  function tellDropped(): void {
    const lines = dropped;
    dropped = 0;
    onDropped(lines);
  }

  /** @returns how much of the line is done with, in bytes. */
  function put(line: Buffer): number {
    try {
      const written = writeSync(fd, line);
      fails = false;
      return written;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
      fails = true;
      dropped += 1;
      return line.length;
    }
  }
}

function sleepSync(forMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, forMs);
}
