import type { BudgetView } from '../caller/budget.ts';
import type { Caller } from '../caller/callers.ts';
import type { FreshnessDefaults } from '../caller/freshness.ts';
import { freshUsage } from '../caller/usage.ts';
import type { FreshReads, Usage } from '../caller/usage.ts';
import type { Clock } from '../clock.ts';
import { createFreshnessReader } from './asked-freshness.ts';
import type { TextMemory } from './text-memory.ts';

/**
 * Whole answers that were made of nothing but what memory knew. Until the caller's memory knows anything else, and while
 * that is as young as is asked for, the same operation with the same variables would be answered the same: it need not run.
 */
export interface RememberedAnswers {
  /** Those of one operation with its variables. */
  forOperation(): OperationAnswers;
}

export interface OperationAnswers {
  /** What the caller would be answered; undefined where the operation has to run. */
  find(caller: Caller, cacheControl: string | undefined): RememberedAnswer | undefined;
  /** The operation has just run for the caller, waited for nothing and was answered with no error. */
  keep(caller: Caller, data: WrittenData, reads: FreshReads): void;
}

/** The value of `data`, as JSON. */
export interface WrittenData {
  readonly json: string;
  /** Its length in UTF-8. */
  readonly bytes: number;
}

/** What an answer tells of its request beside its data. */
export interface Account {
  /** What the request has cost so far. */
  usage(): Usage;
  /** The caller's plan as known without asking, for the response's headers. */
  latestBudget(): BudgetView | undefined;
  /** It is over: what it has saved counts. */
  countSaved(): void;
}

export interface RememberedAnswer extends Account {
  readonly data: WrittenData;
}

export interface RememberedAnswersOptions {
  readonly clock: Clock;
  /** How old answers may be where the request does not say. */
  readonly freshness: FreshnessDefaults;
  /** What bounds the room that all answers take. */
  readonly memory: TextMemory;
}

export function createRememberedAnswers(options: RememberedAnswersOptions): RememberedAnswers {
  const { clock, memory } = options;
  const freshnessOf = createFreshnessReader(options.freshness);
  return {
    forOperation() {
      // By what a caller knew when it was answered, which is an object of its own: no caller finds what is of another.
      const known = memory.forSelection<{ readonly data: WrittenData; readonly reads: FreshReads }>();
      return {
        find(caller, cacheControl) {
          const answer = known.find(caller.revision());
          if (!answer || caller.refusal()) return undefined;
          const { data, reads } = answer;
          const nowMs = clock.elapsed();
          if (nowMs - reads.oldestAsOfMs > freshnessOf(cacheControl).maxAgeMs) return undefined;
          return {
            data,
            usage: () => freshUsage(reads, nowMs),
            latestBudget: () => caller.budget.latest(),
            countSaved: () => caller.saved({ FRESH: reads.demands }),
          };
        },
        keep: (caller, data, reads) => known.keep(caller.revision(), { data, reads }, data.json.length),
      };
    },
  };
}
