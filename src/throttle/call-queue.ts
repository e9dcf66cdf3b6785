import Bottleneck from 'bottleneck';

/**
 * Starts the calls of one key with Bottleneck, which every upstream call passes.
 *
 * Bottleneck decides when a job starts: its reservoir has a permit, and fewer than `maxConcurrent` jobs run. petql decides the rest
 * (`throttle.ts`): it grants the permits, so the reservoir has no refresh interval (which a change of settings would stop for ever,
 * SGrondin/bottleneck#185); and which call a job makes, since Bottleneck cannot abort a job that waits (SGrondin/bottleneck#60).
 */
export class CallQueue {
  readonly #limiter: Bottleneck;

  constructor(maxConcurrent: number) {
    this.#limiter = new Bottleneck({ reservoir: 0, maxConcurrent });
    // Bottleneck yields three times a job, one job at a time. Its timers take at least 1 ms each: a call would start 5 ms late, and
    // a key could make at most 450 calls a second.
    Object.assign(Reflect.get(this.#limiter, '_store'), { yieldLoop: () => new Promise(setImmediate) });
    // Nobody listens to the limiter and its queues: Bottleneck's twenty events a job would take half of its CPU time.
    for (const part of [this.#limiter, Reflect.get(this.#limiter, '_queues')]) {
      Object.assign(Reflect.get(part, 'Events'), { trigger() {} });
    }
  }

  /** Runs the job, which never rejects, once it has a permit and fewer than `maxConcurrent` jobs run. */
  schedule(job: () => Promise<void>): void {
    void this.#limiter.schedule(job);
  }

  /** Adds permits to the reservoir, or takes some back. */
  addPermits(count: number): void {
    if (count !== 0) void this.#limiter.incrementReservoir(count);
  }
}
