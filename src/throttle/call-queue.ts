import Bottleneck from 'bottleneck';

/**
 * Starts the calls of one key. Bottleneck decides when a job starts: once its reservoir has a permit, and fewer than `maxConcurrent`
 * jobs run. petql decides which call the job then makes (`throttle.ts`), since Bottleneck cannot abort a job that waits
 * (SGrondin/bottleneck#60). The reservoir has no refresh interval: permits come from the account alone, and a change of settings would stop the refresh for ever
 * (SGrondin/bottleneck#185).
 */
export function createCallQueue(maxConcurrent: number) {
  const limiter = new Bottleneck({ reservoir: 0, maxConcurrent });
  // Bottleneck yields three times a job, one job at a time. Its timers take at least 1 ms each: a call would start 5 ms late, and
  // a key could make at most 450 calls a second.
  Object.assign(Reflect.get(limiter, '_store'), { yieldLoop: () => new Promise(setImmediate) });
  return {
    /** Runs the job, which never rejects, once it has a permit and fewer than `maxConcurrent` jobs run. */
    schedule(job: () => Promise<void>) {
      void limiter.schedule(job);
    },
    /** Adds permits, or takes some back. */
    addPermits(count: number) {
      if (count !== 0) void limiter.incrementReservoir(count);
    },
  };
}
