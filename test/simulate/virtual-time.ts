import { mock } from 'node:test';
import type { Clock } from '../../src/clock.ts';

const turnOfTheLoop = globalThis.setImmediate;

/** A clock and timers that stand still until they are moved. */
export interface VirtualTime {
  readonly clock: Clock;
  /** Milliseconds since it began. */
  readonly elapsedMs: number;
  /** Moves on, running the timers that are due; what they have started goes on until it waits for a timer itself. */
  advance(ms: number): Promise<void>;
  /** The same for a time in which nobody waits for anything. */
  skip(ms: number): void;
  [Symbol.dispose](): void;
}

export function startVirtualTime(startMs: number): VirtualTime {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  let elapsedMs = 0;
  const skip = (ms: number) => {
    elapsedMs += ms;
    mock.timers.tick(ms);
  };
  return {
    clock: { now: () => startMs + elapsedMs, elapsed: () => 1_000_000 + elapsedMs },
    get elapsedMs() {
      return elapsedMs;
    },
    async advance(ms) {
      skip(ms);
      await new Promise<void>((resolve) => {
        turnOfTheLoop(resolve);
      });
    },
    skip,
    [Symbol.dispose]: () => mock.timers.reset(),
  };
}
