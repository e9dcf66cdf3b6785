import type { Clock } from '../clock.ts';
import { PetqlError, retryIn } from '../errors.ts';
import { setNewest } from '../memory.ts';
import type { CallKey, ListName, ReadKey } from '../pets/read-key.ts';
import { answerFrom } from '../pets/snapshot.ts';
import type { Snapshot } from '../pets/snapshot.ts';
import { backoffMs } from '../throttle/backoff.ts';
import type { CallLine } from '../throttle/call-line.ts';

/** A call whose last try failed. */
export interface FailedCall {
  readonly error: PetqlError;
  /** Whether the same call may succeed a moment later. */
  readonly isTransient: boolean;
  /** Tries that failed since the last one that worked. Early retries are part of the try before them. */
  readonly failures: number;
  /** When the first of them failed. */
  readonly sinceMs: number;
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
  /** What its response asked for; undefined where it did not. */
  readonly retryAfterMs: number | undefined;
  /** Takes an early retry from the retry budget; false where there is none, or no read waits for it. */
  readonly takeRetry: () => boolean;
}

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
  /** Ends the backoff that is waited for and over first, at `#wakeAtMs`. */
  #timer: NodeJS.Timeout | undefined;
  #wakeAtMs = Infinity;
  #isClosed = false;
  readonly #elapsed: Clock['elapsed'];
  readonly #now: Clock['now'];
  readonly #line: CallLine;

  /** @param line is reviewed once a backoff is over. */
  constructor({ elapsed, now }: Clock, line: CallLine) {
    this.#elapsed = elapsed;
    this.#now = now;
    this.#line = line;
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

  /** Whether reads wait for the next try of the call; they wait for none once petql stops. */
  isPostponed(call: CallKey): boolean {
    return !this.#isClosed && this.isBackingOff(call);
  }

  /**
   * Returns the error of a read without data, whose own call is not tried again before its backoff ends; undefined where it may be
   * called. After one failure the backoff is as long as a request accepts cached data; for an early retry the read waits.
   */
  errorOf(key: ReadKey, maxAgeMs: number): PetqlError | undefined {
    const failed = this.#calls.get(key);
    if (!failed || failed.isRetriedEarly || !this.isBackingOff(key)) return undefined;
    const isRecent = failed.failures > 1 || this.#elapsed() - failed.failedAtMs <= maxAgeMs;
    return isRecent ? this.#withRetry(failed.error, failed.retryAtMs) : undefined;
  }

  /**
   * Whether reads get calls of their own instead of the list: it broke its contract, or failed twice. Reads with stale data do so
   * only where other calls work meanwhile. In an outage they would fail too.
   */
  isAvoided(list: ListName, hasAcceptedEntry: boolean): boolean {
    const failed = this.#calls.get(list);
    if (!failed || this.#elapsed() >= failed.failedAtMs + AVOIDED_MS) return false;
    return !failed.isTransient || (failed.failures > 1 && (!hasAcceptedEntry || failed.isAlone));
  }

  /** Records a failed try. */
  record(call: CallKey, { sentAtMs, retryAfterMs, takeRetry, error, isTransient }: Failure): FailedCall {
    const failedAtMs = this.#elapsed();
    const before = this.#calls.get(call);
    const retries = before?.isRetriedEarly ? before.retries + 1 : 0;
    const isNewTry = !before || (retries === 0 && sentAtMs >= before.failedAtMs);
    const failures = (before?.failures ?? 0) + (isNewTry ? 1 : 0);

    const mayRetryEarly = isTransient && retryAfterMs === undefined && !this.#isClosed;
    const earlyPauseMs = mayRetryEarly ? EARLY_PAUSES_MS[retries] : undefined;
    const isRetriedEarly = earlyPauseMs !== undefined && takeRetry();
    const isAlone = before !== undefined && this.#workedAtMs > before.failedAtMs;
    const sinceMs = before?.sinceMs ?? failedAtMs;
    // Where other calls work, it is no outage.
    const lastsMs = isAlone ? 0 : failedAtMs - sinceMs;
    const pauseMs = isRetriedEarly
      ? earlyPauseMs * (0.5 + Math.random())
      : backoffMs({ count: failures, lastsMs, retryAfterMs });

    const failed: FailedCall = {
      error: this.#withRetry(error, failedAtMs + pauseMs),
      isTransient,
      failures,
      sinceMs,
      isAlone,
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

  /** Reviews the line at the end of this backoff, for the reads that wait for it. */
  wakeAt(atMs: number): void {
    if (atMs >= this.#wakeAtMs) return;
    clearTimeout(this.#timer);
    this.#wakeAtMs = atMs;
    const waitMs = Math.max(0, Math.ceil(atMs - this.#elapsed()));
    this.#timer = setTimeout(() => this.#wake(atMs), waitMs);
  }

  /** Ends the wait for further tries. From now on no call is tried again early. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Ends the backoffs up to this time: by the clock alone they may last a moment longer than the timer. */
  #wake(atMs: number): void {
    this.#wakeAtMs = Infinity;
    for (const failed of this.#calls.values()) {
      if (failed.retryAtMs <= atMs) failed.retryAtMs = -Infinity;
    }
    this.#line.reviewSoon();
  }

  /** Lets the error say when the call is tried again. */
  #withRetry({ code, message, details }: PetqlError, retryAtMs: number): PetqlError {
    const retryAfterMs = Math.max(1, Math.ceil(retryAtMs - this.#elapsed()));
    return new PetqlError(code, message, { details: { ...details, ...retryIn(retryAfterMs, this.#now()) } });
  }
}
