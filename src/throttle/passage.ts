import type { Permit } from './account.ts';
import type { UpstreamAnswer } from '../upstream/pet-api.ts';
import type { MinWait, Standing } from './standing.ts';

/** A request for one permit. */
export interface Turn {
  readonly kind: 'read' | 'write';
  /** By `clock.elapsed()`. Infinity where `signal` ends the wait. */
  readonly deadlineMs: number;
  /** Aborts the wait. */
  readonly signal?: AbortSignal | undefined;
}

export type Passage<T> =
  | { readonly kind: 'answered'; readonly answer: UpstreamAnswer<T> }
  /** `send` returned undefined. */
  | { readonly kind: 'unused' }
  | Refused;

export interface Refused {
  readonly kind: 'refused';
  /** `plan`: the plan allows no call before the deadline; `crowded`: the queue is full; `late`: the deadline passed. */
  readonly reason: 'aborted' | 'banned' | 'crowded' | 'late' | 'plan' | 'stopping';
  /** When to come back. */
  readonly retryAfterMs: number;
  readonly window: 'DAY' | 'MINUTE';
}

export interface Outlook {
  /** The minimum wait; 0 where no reason to wait is known. */
  readonly waitMs: number;
  /** The refusal of a call that cannot wait so long. */
  readonly refused: Refused;
}

/** A call that waits. */
export interface Waiter {
  readonly kind: Turn['kind'];
  readonly deadlineMs: number;
  /** Sends, and settles once the call is over. */
  use(permit: Permit): Promise<void>;
  refuse(refused: Refused): void;
  fail(error: unknown): void;
}

const MIN_RETRY_AFTER_MS = 1_000;

/** Makes a refusal from the expected wait. */
export function refusalOf(
  reason: Refused['reason'],
  { waitMs, window = 'MINUTE' }: MinWait,
  standing: Standing | undefined,
): Refused {
  const isBan = reason === 'plan' && standing?.banned === true && standing.pausedForMs > 0;
  return {
    kind: 'refused',
    reason: isBan ? 'banned' : reason,
    retryAfterMs: Math.max(MIN_RETRY_AFTER_MS, waitMs),
    window,
  };
}
