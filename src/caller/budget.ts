import type { Clock } from '../clock.ts';
import type { Standing, WindowStanding } from '../throttle/ledger.ts';
import { planName } from '../plan.ts';
import type { Throttle } from '../throttle/throttle.ts';

/** What a caller has left of its plan, as of the last header plus petql's own count. Looking costs no upstream call. */
export interface Budget {
  /** As known in this process, for the headers of a response; undefined before the first call. */
  latest(): BudgetView | undefined;
  /** The same, with what other replicas have spent. */
  read(): Promise<BudgetView>;
}

export interface BudgetView {
  /** "Free", or the figures of a plan without a name: "500/20000". */
  readonly plan: string;
  readonly windows: readonly BudgetWindow[];
  /** Calls that wait for their turn. */
  readonly queued: number;
  /** Until when no call is made with this key, after a 429. */
  readonly closedUntil: Date | undefined;
}

export interface BudgetWindow {
  readonly window: 'DAY' | 'MINUTE';
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Undefined while nothing has been called in the window. */
  readonly resetAt: Date | undefined;
}

/** GraphQL's Int holds no more, and nobody makes so many calls: a plan without a limit may be told with such a number. */
const MOST_SHOWN = 2 ** 31 - 1;

export interface BudgetOptions {
  readonly throttle: Pick<Throttle, 'refreshed' | 'standing'>;
  readonly clock: Pick<Clock, 'now'>;
  /** How many calls wait. It is asked with each answer. */
  waiting(): number;
}

export function createBudget({ throttle, clock, waiting }: BudgetOptions): Budget {
  let seen: { readonly standing: Standing; readonly view: BudgetView } | undefined;
  return {
    latest() {
      const standing = throttle.standing();
      if (!standing) return undefined;
      if (seen?.standing !== standing || seen.view.queued !== waiting()) seen = { standing, view: view(standing) };
      return seen.view;
    },
    read: async () => view(await throttle.refreshed()),
  };

  function view({ minute, day, pausedForMs }: Standing): BudgetView {
    return {
      plan: planName({ perMinute: minute.limit, perDay: day.limit }),
      windows: [windowView('MINUTE', minute), windowView('DAY', day)],
      queued: waiting(),
      closedUntil: pausedForMs > 0 ? new Date(clock.now() + pausedForMs) : undefined,
    };
  }

  function windowView(window: BudgetWindow['window'], standing: WindowStanding): BudgetWindow {
    const { limit, used, remaining, resetInMs } = standing;
    const resetAt = resetInMs > 0 ? new Date(clock.now() + resetInMs) : undefined;
    return { window, limit: shown(limit), used: shown(used), remaining: shown(Math.min(remaining, limit)), resetAt };
  }
}

/** The window with the fewest calls left. */
export function tightestWindow({ windows }: BudgetView): BudgetWindow | undefined {
  let tightest = windows[0];
  for (const window of windows) if (tightest && window.remaining < tightest.remaining) tightest = window;
  return tightest;
}

function shown(calls: number): number {
  return Math.min(calls, MOST_SHOWN);
}
