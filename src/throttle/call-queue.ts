import Bottleneck from 'bottleneck';

const PRIORITY = { write: 0, read: 5 } as const;

/**
 * The calls of one key that wait for a permit. Its reservoir has no refresh interval: permits come from the account alone, and a
 * change of settings would stop the refresh for ever (SGrondin/bottleneck#185).
 */
export function createCallQueue(maxConcurrent: number) {
  const limiter = new Bottleneck({ reservoir: 0, maxConcurrent });
  // It yields three times a job, one job at a time: by timers, a call starts 5 ms late, and a key has at most 450 calls a second.
  Object.assign(Reflect.get(limiter, '_store'), { yieldLoop: () => new Promise(setImmediate) });
  return {
    /** Runs the job, which never rejects, once it has a permit and fewer than `maxConcurrent` jobs run. */
    schedule(kind: 'read' | 'write', job: () => Promise<void>) {
      void limiter.schedule({ priority: PRIORITY[kind] }, job);
    },
    /** Adds permits, or takes some back. */
    addPermits(count: number) {
      if (count !== 0) void limiter.incrementReservoir(count);
    },
  };
}
