import Bottleneck from 'bottleneck';

/** The calls of one key that wait for a permit. */
export interface CallQueue {
  /**
   * Runs the job once it has a permit and fewer than `maxConcurrent` jobs run.
   *
   * @param onDropped is called when the queue is full. A write drops the oldest read.
   */
  schedule(kind: 'read' | 'write', job: () => Promise<void>, onDropped: () => void): void;
  /** Adds permits, or takes some back. */
  addPermits(count: number): void;
}

const PRIORITY = { write: 0, read: 5 } as const;

/**
 * The only file that imports Bottleneck. Its reservoir has no refresh interval: permits come from the account alone, and a
 * change of settings would stop the refresh for ever (SGrondin/bottleneck#185).
 */
export function createCallQueue({
  maxConcurrent,
  maxWaiting,
}: {
  maxConcurrent: number;
  maxWaiting: number;
}): CallQueue {
  const limiter = new Bottleneck({
    reservoir: 0,
    maxConcurrent,
    highWater: maxWaiting,
    strategy: Bottleneck.strategy.OVERFLOW_PRIORITY,
  });
  return {
    schedule(kind, job, onDropped) {
      // A job never rejects, so a rejection means that Bottleneck dropped it.
      limiter.schedule({ priority: PRIORITY[kind] }, job).catch(onDropped);
    },
    addPermits(count) {
      if (count !== 0) void limiter.incrementReservoir(count);
    },
  };
}
