import Bottleneck from 'bottleneck';

/**
 * Starts the calls of one key with Bottleneck, which every upstream call passes. A job is a permit: petql grants the permits and
 * decides which call takes one (`call-line.ts`); Bottleneck decides when it starts, as fewer than `maxConcurrent` jobs run.
 *
 * It has no reservoir: a refreshed one stops for ever at a change of settings (SGrondin/bottleneck#185), exceeds the plan or wastes
 * it, and another one would count each permit twice. It has no priorities, and a job belongs to no waiter, since Bottleneck cannot
 * abort a job that waits (SGrondin/bottleneck#60).
 *
 * Three private parts are replaced, since no option does it. With jobs of 20 ms, of 50 at once the last one starts after:
 * as published 163 ms, at 554 µs of CPU a job; without events 134 ms, at 351 µs; with both replaced 3.6 ms, at 130 µs. The third one is a moment of the wall clock.
 */
export class CallQueue {
  readonly #limiter: Bottleneck;

  constructor(maxConcurrent: number) {
    this.#limiter = new Bottleneck({ maxConcurrent });
    const store: object = Reflect.get(this.#limiter, '_store');
    // Bottleneck yields three times a job, one job at a time, by timers of at least 1 ms each.
    Object.assign(store, { yieldLoop: () => new Promise(setImmediate) });
    // Before which no job starts: the last start, without a minTime. A wall clock that was set back would hold all jobs until then.
    Object.defineProperty(store, '_nextRequest', { get: () => 0, set() {} });
    // Nobody listens to the limiter and its queues, which have twenty events a job.
    for (const part of [this.#limiter, Reflect.get(this.#limiter, '_queues')]) {
      Object.assign(Reflect.get(part, 'Events'), { trigger() {} });
    }
  }

  /** Runs the job, which never rejects, once fewer than `maxConcurrent` jobs run. */
  schedule(job: () => Promise<void>): void {
    void this.#limiter.schedule(job);
  }
}
