import type { Clock } from '../clock.ts';
import type { PetqlError } from '../errors.ts';
import { setNewest } from '../memory.ts';
import type { CallKey, ListName, ReadKey } from '../pets/read-key.ts';
import { answerFrom } from '../pets/snapshot.ts';
import type { Snapshot } from '../pets/snapshot.ts';

/** A call whose last try failed. */
export interface FailedCall {
  readonly error: PetqlError;
  /** Whether the same call may succeed a moment later. */
  readonly isTransient: boolean;
  /** Tries that failed since the last one that worked. Early retries are part of the try before them. */
  readonly failures: number;
  /** Whether other calls of the caller worked between the last two failures, so that it fails alone. */
  readonly isAlone: boolean;
  /** Early retries since the last try. */
  readonly retries: number;
  /** Whether the next try is an early retry, for which reads without data wait. */
  readonly isRetriedEarly: boolean;
  readonly failedAtMs: number;
  /** The end of its backoff. */
  retryAtMs: number;
}

interface Failure extends Pick<FailedCall, 'error' | 'isTransient'> {
  /** When the call was sent: calls that were in flight together are one try. */
  readonly sentAtMs: number;
  /** What the upstream asked for; undefined where it did not. */
  readonly retryAfterMs: number | undefined;
  /** Takes an early retry from the retry budget; false where there is none, or no read waits for it. */
  readonly takeRetry: () => boolean;
}

/** The first backoff; each further failure doubles it. */
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
/** The mean pause before the first and the second early retry; there is no third. */
const EARLY_PAUSES_MS = [100, 400];
/** How long a list that fails is not used to save calls. */
const AVOIDED_MS = 60_000;
/** Failed calls that are remembered, the latest ones. */
const MAX_CALLS = 1_000;

/** The calls of one caller that fail, each until a response answers it: when it is tried again, and which reads may use it. */
export class FailedCalls {
  /** The calls whose last try failed, by the time of their failure. */
  readonly #calls = new Map<CallKey, FailedCall>();
  /** When the latest call that worked was sent. */
  #workedAtMs = -Infinity;
  readonly #elapsed: Clock['elapsed'];

  constructor({ elapsed }: Pick<Clock, 'elapsed'>) {
    this.#elapsed = elapsed;
  }

  /** Whether any call fails. */
  get isEmpty(): boolean {
    return this.#calls.size === 0;
  }

  /** Returns the call if its last try failed. */
  find(call: CallKey): FailedCall | undefined {
    return this.#calls.get(call);
  }

  /** Whether the call failed and is not tried again yet. */
  isBackingOff(call: CallKey): boolean {
    return this.#elapsed() < (this.#calls.get(call)?.retryAtMs ?? -Infinity);
  }

  /**
   * Returns the error of a read without data, whose own call is not tried again for `maxAgeMs`; undefined where it may be called.
   * A backoff that ends earlier counts, and so does an early retry, which the read waits for.
   */
  errorOf(key: ReadKey, maxAgeMs: number): PetqlError | undefined {
    const failed = this.#calls.get(key);
    if (!failed || failed.isRetriedEarly || !this.isBackingOff(key)) return undefined;
    return this.#elapsed() - failed.failedAtMs <= maxAgeMs ? failed.error : undefined;
  }

  /**
   * Whether reads get calls of their own instead of the list: it broke its contract, or failed twice. Reads with stale data do so
   * only where other calls work meanwhile. In an outage they would fail too.
   */
  isAvoided(list: ListName, hasData: boolean): boolean {
    const failed = this.#calls.get(list);
    if (!failed || this.#elapsed() >= failed.failedAtMs + AVOIDED_MS) return false;
    return !failed.isTransient || (failed.failures > 1 && (!hasData || failed.isAlone));
  }

  /** Records a failed try. */
  record(call: CallKey, { sentAtMs, retryAfterMs, takeRetry, error, isTransient }: Failure): FailedCall {
    const failedAtMs = this.#elapsed();
    const before = this.#calls.get(call);
    const retries = before?.isRetriedEarly ? before.retries + 1 : 0;
    const isNewTry = !before || (retries === 0 && sentAtMs >= before.failedAtMs);
    const failures = (before?.failures ?? 0) + (isNewTry ? 1 : 0);

    const earlyPauseMs = isTransient && retryAfterMs === undefined ? EARLY_PAUSES_MS[retries] : undefined;
    const isRetriedEarly = earlyPauseMs !== undefined && takeRetry();
    const pauseMs = isRetriedEarly ? earlyPauseMs * (0.5 + Math.random()) : backoffMs(failures, retryAfterMs);

    const failed: FailedCall = {
      error,
      isTransient,
      failures,
      isAlone: before !== undefined && this.#workedAtMs > before.failedAtMs,
      retries,
      isRetriedEarly,
      failedAtMs,
      retryAtMs: failedAtMs + pauseMs,
    };
    setNewest(this.#calls, [call, failed], MAX_CALLS);
    return failed;
  }

  /** Forgets the failures of all calls that the response answers, if its call was sent after them. */
  recordResponse(snapshot: Snapshot): void {
    this.#workedAtMs = Math.max(this.#workedAtMs, snapshot.asOfMs);
    for (const [call, { failedAtMs }] of this.#calls) {
      if (snapshot.asOfMs >= failedAtMs && answerFrom(snapshot, call) !== undefined) this.#calls.delete(call);
    }
  }

  /** Ends the backoffs up to this time. The timer calls it: by the clock alone they may last a moment longer. */
  endBackoffs(untilMs: number): void {
    for (const failed of this.#calls.values()) {
      if (failed.retryAtMs <= untilMs) failed.retryAtMs = -Infinity;
    }
  }
}

function backoffMs(failures: number, retryAfterMs = FIRST_BACKOFF_MS * 2 ** (failures - 1)): number {
  return Math.min(Math.max(retryAfterMs, FIRST_BACKOFF_MS), MAX_BACKOFF_MS);
}
