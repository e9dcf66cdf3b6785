import Bottleneck from 'bottleneck';

/** A queue that lets as many places run as there were tokens for, and only so many at a time. */
export interface Slots {
  /** Takes a place in the queue; `use` runs when a token is there, and holds the place until it settles. */
  take(use: () => Promise<void>): void;
  /** Lets so many more places run. */
  release(tokens: number): void;
}

export interface SlotsOptions {
  readonly maxConcurrent: number;
  readonly maxQueued: number;
}

/**
 * The one place that knows Bottleneck. It queues, bounds concurrency and releases; tokens come from the ledger alone.
 * So there is no refresh interval: any change of settings would stop it for ever (SGrondin/bottleneck#185), and it would
 * start with the limiter and not with the upstream's window.
 */
export function createSlots({ maxConcurrent, maxQueued }: SlotsOptions): Slots {
  const limiter = new Bottleneck({
    reservoir: 0,
    maxConcurrent,
    highWater: maxQueued,
    strategy: Bottleneck.strategy.OVERFLOW,
  });
  return {
    take(use) {
      // `use` never rejects, and whoever queues keeps below `maxQueued`: nothing is dropped.
      void limiter.schedule(use);
    },
    release(tokens) {
      void limiter.incrementReservoir(tokens);
    },
  };
}
