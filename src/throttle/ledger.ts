import type { Plan } from '../plan.ts';

/**
 * What the throttle asks of the keeper of a caller's calls: one in memory, one in Redis, and one that goes on without
 * Redis. All three give the same grants for the same history; test/throttle holds them to it.
 *
 * Times are milliseconds. Durations only pass through this interface, so that no two clocks are ever compared.
 */
export interface Ledger {
  /**
   * Reports what became of earlier grants, asks for up to `wanted` new ones, and says what is left; all in one step.
   * Never rejects for reasons of its own making: a ledger that cannot be reached is the failover's business.
   */
  exchange(apiKey: string, exchange: Exchange): Promise<Standing>;
  /** Writes down what has to outlive the process, and lets go of everything. */
  close(): Promise<void>;
}

export interface Exchange {
  readonly reports: readonly Report[];
  /** Calls that could start now. */
  readonly wanted: number;
}

/** The two windows of every plan (pet-api.md, "Rate limits by plan"). */
export type WindowName = 'minute' | 'day';

/**
 * One permission to call. It remembers where the ledger stood when it was given, which makes every later answer's
 * headers readable: see ledger-state.ts.
 */
export interface Grant {
  /** Which life of the ledger gave it: a ledger that has lost its state begins a new one. */
  readonly generation: string;
  /** Its own number among all the starts of that generation. */
  readonly start: number;
  /** How many starts were surely counted by the upstream, or surely never left, when it was given. */
  readonly countedBefore: number;
  /** The ledger's clock when it was given. */
  readonly grantedAtMs: number;
  /** Whether it is the one call that finds out what an unknown window holds. */
  readonly probe: boolean;
}

/** What became of a grant. */
export type Report =
  /** It was not used: nothing left the process. */
  | { readonly kind: 'returned'; readonly grant: Grant }
  /** It was sent and nothing came back; the upstream may still count it. */
  | { readonly kind: 'lost'; readonly grant: Grant }
  /** It was answered, and so it was counted. */
  | { readonly kind: 'answered'; readonly grant: Grant; readonly readings: readonly Reading[] }
  /** It was answered by a 429, or by what looks like a ban after one. */
  | {
      readonly kind: 'refused';
      readonly grant: Grant;
      readonly readings: readonly Reading[];
      readonly refusal: Refusal;
    }
  /** What another ledger granted while this one could not be reached, or granted before it lost its state. */
  | ({ readonly kind: 'adopted' } & Memory);

/** What one response's headers say of one window. */
export interface Reading {
  readonly window: WindowName;
  /** The window's limit, where it was told. */
  readonly limit: number | undefined;
  readonly remaining: number;
  /** From now on, by the upstream's clock. */
  readonly resetInMs: number;
  /** The reset as the upstream names it, to tell one window from the next. */
  readonly resetId: number;
  /**
   * The limit of the other window, by what this one's says of the plan; undefined where it says nothing that was not known, or
   * where it may be either window's.
   */
  readonly otherLimit: number | undefined;
  /** How long ago it was told. Default 0. */
  readonly agoMs?: number;
}

export interface Refusal {
  /** Retry-After, or 0. */
  readonly retryAfterMs: number;
  /** Whether it is a 401 or 403 instead of a 429. */
  readonly ban: boolean;
  /** From 0 to 1, to spread the callers that were refused together. */
  readonly jitter: number;
}

/** What is worth telling a ledger that knows less. But for a plan that it does not know, it only lowers what that allows. */
export interface Memory {
  /** The caller's plan, where the upstream told it. */
  readonly plan?: Plan;
  /** Starts that were answered. */
  readonly calls: number;
  /** Starts that are still under way. */
  readonly underWay: number;
  /**
   * Which generation what was spent before is known of, and how many it had started by then: a ledger that is as far has all of
   * that already. Undefined where it is known of none.
   */
  readonly knownOf?: { readonly generation: string; readonly started: number };
  /** What was spent within the last minute, as far as it may matter still, all told. */
  readonly minuteUsed: number;
  /** What was left of the minute when the upstream last told of it, but for what is under way, where its reset is still ahead. */
  readonly minuteTold?: { readonly remaining: number; readonly inMs: number; readonly id: number };
  /**
   * How long ago it was found that the ledger cannot be reached, where it could not be since this key was last asked for: what
   * the ledger was told before, others may have called with since, alone. Undefined otherwise.
   */
  readonly awayForMs?: number;
  /** What is spent of the day, all told. */
  readonly dayUsed: number;
  /** In how long the last of what was counted of the day has left it, from where no header tells of the day. */
  readonly dayFreeInMs?: number;
  /** When the day resets, where the upstream has told and it is still ahead. */
  readonly dayReset?: { readonly inMs: number; readonly id: number };
  readonly pausedForMs: number;
  /** Whether a 403 or 401 now may be a ban. */
  readonly refusedLately: boolean;
}

/** Why no more was granted. */
export type Closed = 'paused' | 'probing' | WindowName;

/** For how long it is believed what a ledger says that is alone, in milliseconds: it may join the others at any moment. */
export const ALONE_GOOD_MS = 250;

/** How a caller stands after an exchange. */
export interface Standing {
  readonly grants: readonly Grant[];
  /** Why fewer were granted than wanted; undefined when all were. */
  readonly closed: Closed | undefined;
  /** When it is worth asking again, in milliseconds from now; 0 when nothing is closed. */
  readonly waitMs: number;
  /**
   * How many calls may be under way at a time, from a ledger that is alone and may soon say otherwise; undefined from one that
   * all share.
   */
  readonly atATime?: number;
  /** That of the state that is kept; another one, or empty, where nothing is kept of the caller. */
  readonly generation: string;
  /** How many starts that generation has granted or adopted; it only grows. */
  readonly started: number;
  readonly minute: WindowStanding;
  readonly day: WindowStanding;
  /** In how long the last of the starts that are counted of the day has left it; 0 where none is. */
  readonly dayFreeInMs: number;
  /** How long nobody with this key may call; 0 when the gate is open. */
  readonly pausedForMs: number;
  /** Whether the pause is for what looks like a ban. */
  readonly banned: boolean;
  /** Whether there was a 429 a short while ago, so that a 401 or 403 now looks like a ban. */
  readonly refusedLately: boolean;
  /** Whether the plan's figures are configured or were told by the upstream, and not merely assumed. */
  readonly planKnown: boolean;
}

export interface WindowStanding {
  /** Whether the upstream's headers tell of it, or petql counts for itself, or nothing is known until a probe returns. */
  readonly mode: 'told' | 'counted' | 'unknown';
  readonly limit: number;
  /** Starts that are spent or under way, as far as is known. */
  readonly used: number;
  /** Starts that are left; what an unknown window will hold is its limit at most. */
  readonly remaining: number;
  /** When it resets, or in a counted window when a first start becomes free; 0 when that is not known. */
  readonly resetInMs: number;
  /** The reset as the upstream names it; 0 where it has told none. */
  readonly resetId: number;
}
