import Bottleneck from 'bottleneck';

/**
 * Starts the calls of one key with Bottleneck, which every upstream call passes. petql decides which calls may go (`call-line.ts`);
 * Bottleneck counts those that run, at most `maxConcurrent`, and starts them one after the other, so that a 429 stops the next one.
 *
 * It has no reservoir: a refreshed one stops for ever at a change of settings (SGrondin/bottleneck#185), exceeds the plan or wastes
 * it, and another one would count each permit twice. It has no priorities, and a job belongs to no waiter, since Bottleneck cannot
 * abort a job that waits (SGrondin/bottleneck#60).
 *
 * Private parts of the pinned version are replaced, since no option does it (`test/plan/bottleneck.test.ts`). Of 50 jobs of 20 ms at
 * once, the last one starts after 163 ms as published, at 554 µs of CPU a job; after 3 ms with these, at 40 µs.
 */
export class CallQueue {
  readonly #limiter: Bottleneck;
  readonly #store: object;

  constructor(maxConcurrent: number) {
    this.#limiter = new Bottleneck({ maxConcurrent });
    // Its locks take ten promises for each task.
    Object.assign(this.#limiter, { _submitLock: new Lock(), _registerLock: new Lock() });
    this.#store = Object.assign(Reflect.get(this.#limiter, '_store'), { yieldLoop, ...AT_ONCE });
    // Nobody listens to the limiter and its queues, which have twenty events a job.
    for (const part of [this.#limiter, Reflect.get(this.#limiter, '_queues')]) {
      Object.assign(Reflect.get(part, 'Events'), { trigger });
    }
  }

  /** Runs the job, which never rejects, once fewer than `maxConcurrent` jobs run. */
  schedule(job: () => Promise<void>): void {
    void this.#limiter.schedule(() => {
      Object.assign(this.#store, AT_ONCE);
      return job();
    });
  }
}

/** Bottleneck yields three times a job, one job at a time, by timers of at least 1 ms each. */
const yieldLoop = (): Promise<void> => new Promise(setImmediate);
/** Before which no job starts: the last start, without a minTime. A wall clock that is set back would hold all jobs until then. */
const AT_ONCE = { _nextRequest: 0 };
const trigger = (): void => undefined;

/** Runs one task after the other. */
class Lock {
  #last: Promise<unknown> = Promise.resolve();
  #tasks = 0;

  schedule<Args extends unknown[], Result>(
    task: (...args: Args) => Promise<Result> | Result,
    ...args: Args
  ): Promise<Result> {
    this.#tasks += 1;
    const running = this.#last.then(() => task(...args));
    const end = () => {
      this.#tasks -= 1;
    };
    this.#last = running.then(end, end);
    return running;
  }

  isEmpty(): boolean {
    return this.#tasks === 0;
  }
}
