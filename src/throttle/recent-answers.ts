import type { Clock } from '../clock.ts';

/** How many of one caller's calls the upstream has counted within its day for sure, however that day is counted. */
export interface RecentAnswers {
  /** One more was answered. */
  add(): void;
  count(): number;
}

/** A day that slides lets go of calls after 24 hours (pet-api.md, "Rate limits by plan"); this is well before that. */
const FORGOTTEN_AFTER_MS = 12 * 3_600_000;

export function createRecentAnswers({ elapsed }: Pick<Clock, 'elapsed'>): RecentAnswers {
  let answers = 0;
  let sinceMs = elapsed();
  return {
    add() {
      forget();
      answers += 1;
    },
    count() {
      forget();
      return answers;
    },
  };

  /** All at once: fewer than there were is never wrong. */
  function forget(): void {
    if (elapsed() - sinceMs < FORGOTTEN_AFTER_MS) return;
    answers = 0;
    sinceMs = elapsed();
  }
}
