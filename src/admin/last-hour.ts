import { MINUTE_MS } from '../common/plan.ts';
import type { Clock } from '../common/clock.ts';

const MINUTES = 60;
const NO_MINUTE = { callsMade: 0, callsSaved: 0, refused: 0 };

/** Counts of this process in one minute. */
export interface Minute {
  readonly startsAt: Date;
  readonly callsMade: number;
  readonly callsSaved: number;
  /** Operations that were RATE_LIMITED. */
  readonly refused: number;
}

type Counted = keyof typeof NO_MINUTE;

/** Counts by the minute of the wall clock, over the last hour. */
export class LastHour {
  readonly #clock: Pick<Clock, 'now'>;
  /** A ring of minutes, each with its number since the epoch and its counts. */
  readonly #minutes = Array.from({ length: MINUTES }, () => ({ number: NaN, ...NO_MINUTE }));

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  add(counted: Counted, count: number): void {
    const number = this.#currentNumber();
    const minute = this.#slot(number);
    if (minute.number !== number) Object.assign(minute, { number, ...NO_MINUTE });
    minute[counted] += count;
  }

  /** Returns sixty minutes, the current one last. */
  minutes(): readonly Minute[] {
    const current = this.#currentNumber();
    return Array.from({ length: MINUTES }, (_, index) => {
      const number = current - MINUTES + 1 + index;
      const { number: counted, ...counts } = this.#slot(number);
      return { startsAt: new Date(number * MINUTE_MS), ...(counted === number ? counts : NO_MINUTE) };
    });
  }

  #slot(number: number) {
    return this.#minutes[number % MINUTES] ?? { number: NaN, ...NO_MINUTE };
  }

  #currentNumber(): number {
    return Math.floor(this.#clock.now() / MINUTE_MS);
  }
}
