import type { Clock } from '../common/clock.ts';
import { PetqlError, retryIn } from '../common/errors.ts';
import { setNewest } from '../common/memory.ts';
import { isList } from '../pets/read-key.ts';
import type { CallKey, ListName, ReadKey } from '../pets/read-key.ts';
import { answerFrom } from '../pets/snapshot.ts';
import type { Snapshot } from '../pets/snapshot.ts';
import { nextBackoff } from '../closed/backoff.ts';
import type { Backoff } from '../closed/backoff.ts';
import type { CallLine } from '../line/call-line.ts';
import type { ClosedOperations } from '../closed/closed-operations.ts';
import type { KeyQuota } from '../quota/key-quota.ts';
import { EARLY_RETRY_PAUSES_MS, MAX_RETRY_AFTER_MS } from '../common/call-times.ts';

/** A call whose last try failed. */
export interface FailedCall {
  readonly error: PetqlError;
  /** Tries that failed in a row. Early retries are part of the try before them. */
  readonly backoff: Backoff;
  /** Whether the same call may succeed a moment later. */
  readonly isTransient: boolean;
  /** Early retries since the last try. */
  readonly retries: number;
  /** Whether the next try is an early retry, for which reads without data wait. */
  readonly isRetriedEarly: boolean;
  /** When the next try may be sent. */
  retryAtMs: number;
}

interface Failure extends Pick<FailedCall, 'error' | 'isTransient'> {
  /** When the call was sent: calls that were in flight together are one try. */
  readonly sentAtMs: number;
  /** What its response asked for; undefined where it did not. */
  readonly retryAfterMs: number | undefined;
  /** What the log says of it. */
  readonly details: object;
  /** Takes an early retry from the retry budget; false where there is none, or no read waits for it. */
  readonly useRetry: () => boolean;
}

/** What the failures of a caller need of it. */
interface FailedCallsParts {
  readonly clock: Clock;
  /** Is reviewed once a backoff is over. */
  readonly line: CallLine;
  readonly quota: KeyQuota;
  readonly closedOperations: ClosedOperations;
}

/** A list that failed so often in a row is closed. */
const FAILURES_TO_CLOSE = 2;
/** Failed calls that are remembered, the latest ones. */
const MAX_CALLS = 1_000;
const NONE: ReadonlySet<CallKey> = new Set();

/** The lists and pets of one caller whose calls fail, each until a response answers it: when it is tried again, and what reads do. */
export class FailedCalls {
  readonly #parts: FailedCallsParts;
  /** The calls whose last try failed, by the time of their failure. */
  readonly #calls = new Map<CallKey, FailedCall>();
  /** The lists that are closed, as operators see it. */
  #shown: ReadonlySet<CallKey> = NONE;
  /** When the latest call that worked was sent. */
  #workedAtMs = -Infinity;
  /** Ends the backoff that is waited for and over first, at `#wakeAtMs`. */
  #timer: NodeJS.Timeout | undefined;
  #wakeAtMs = Infinity;
  #isStopping = false;

  constructor(parts: FailedCallsParts) {
    this.#parts = parts;
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
    return this.#nowMs < (this.#calls.get(call)?.retryAtMs ?? -Infinity);
  }

  /** Returns the time until the call is tried again; 0 where it did not fail. */
  waitMs(call: CallKey): number {
    return Math.max(0, (this.#calls.get(call)?.retryAtMs ?? -Infinity) - this.#nowMs);
  }

  /** Whether reads wait for the next try of the call; they wait for none once petql stops. */
  isPostponed(call: CallKey): boolean {
    return !this.#isStopping && this.isBackingOff(call) && !this.#isToFindOut(call);
  }

  /**
   * Returns the error of a read without data, whose own call is not tried again before its backoff ends; undefined where it may be
   * called. After one failure the backoff is as long as a request accepts cached data; for an early retry the read waits.
   */
  errorOf(key: ReadKey, maxAgeMs: number): PetqlError | undefined {
    const failed = this.#calls.get(key);
    if (!failed || failed.isRetriedEarly || !this.isBackingOff(key) || this.#isToFindOut(key)) return undefined;
    const { failedAtMs, failures } = failed.backoff;
    const isRecent = failures > 1 || this.#nowMs - failedAtMs <= maxAgeMs;
    return isRecent ? this.#withRetry(failed.error, failed.retryAtMs) : undefined;
  }

  /**
   * Whether the list is closed, so that reads get calls of their own. Those with stale data do so only where other calls work: where
   * the API is closed they would fail too.
   */
  isAvoided(list: ListName, hasAcceptedEntry: boolean): boolean {
    const failed = this.#calls.get(list);
    if (!failed || !hasClosed(failed)) return false;
    return !hasAcceptedEntry || this.#workedAtMs > failed.backoff.sinceMs;
  }

  /** Whether the list is closed, and its next try is due. */
  isDue(list: ListName): boolean {
    const failed = this.#calls.get(list);
    return failed !== undefined && hasClosed(failed) && !this.isBackingOff(list);
  }

  /** Records a failed try. */
  record(call: CallKey, { sentAtMs, retryAfterMs = 0, useRetry, error, isTransient, details }: Failure): FailedCall {
    const nowMs = this.#nowMs;
    const before = this.#calls.get(call);
    const retries = before?.isRetriedEarly ? before.retries + 1 : 0;
    // An early retry belongs to the try before it.
    const backoff = nextBackoff(before?.backoff, { sentAtMs: retries > 0 ? -Infinity : sentAtMs, nowMs });

    const mayRetryEarly = isTransient && retryAfterMs === 0 && !this.#isStopping;
    const earlyPauseMs = mayRetryEarly ? EARLY_RETRY_PAUSES_MS[retries] : undefined;
    const isRetriedEarly = earlyPauseMs !== undefined && useRetry();
    const toldAtMs = nowMs + Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
    const retryAtMs = isRetriedEarly
      ? nowMs + earlyPauseMs * (0.5 + Math.random())
      : Math.max(backoff.retryAtMs, toldAtMs);

    const failed: FailedCall = {
      error: this.#withRetry(error, retryAtMs),
      backoff,
      isTransient,
      retries,
      isRetriedEarly,
      retryAtMs,
    };
    setNewest(this.#calls, [call, failed], MAX_CALLS);
    if (isList(call) && hasClosed(failed)) this.#show(call, details);
    return failed;
  }

  /** Forgets the failures of all calls that the response answers, if its call was sent after them. */
  recordResponse(snapshot: Snapshot): void {
    this.#workedAtMs = Math.max(this.#workedAtMs, snapshot.asOfMs);
    for (const [call, { backoff }] of this.#calls) {
      if (snapshot.asOfMs < backoff.failedAtMs || answerFrom(snapshot, call) === undefined) continue;
      this.#calls.delete(call);
      this.#hide(call);
    }
  }

  /** Reviews the line at the end of this backoff, for the reads that wait for it. */
  wakeAt(atMs: number): void {
    if (atMs >= this.#wakeAtMs) return;
    clearTimeout(this.#timer);
    this.#wakeAtMs = atMs;
    const waitMs = Math.max(0, Math.ceil(atMs - this.#nowMs));
    this.#timer = setTimeout(() => this.#wake(atMs), waitMs);
  }

  /** Ends the wait for further tries. From now on no call is tried again early. */
  close(): void {
    this.#isStopping = true;
    clearTimeout(this.#timer);
  }

  /** Records that the lists of the key concern nobody any more. */
  free(): void {
    for (const call of this.#shown) this.#hide(call);
  }

  /** Whether the call is the one that finds out if the API works, whatever it backs off from. */
  #isToFindOut(call: CallKey): boolean {
    const { turn, isListDue } = this.#parts.quota;
    if (!isList(call)) return false;
    return isListDue || (turn.isClosed && turn.calls > 0 && turn.of !== 'others');
  }

  /** Ends the backoffs up to this time: by the clock alone they may last a moment longer than the timer. */
  #wake(atMs: number): void {
    this.#wakeAtMs = Infinity;
    for (const failed of this.#calls.values()) {
      if (failed.retryAtMs <= atMs) failed.retryAtMs = -Infinity;
    }
    this.#parts.line.reviewSoon();
  }

  #show(list: ListName, details: object): void {
    const { closedOperations, quota } = this.#parts;
    // Anybody can make up keys, and a closed API is shown as one.
    if (this.#shown.has(list) || !quota.isProven || quota.closed.isApiClosed(quota)) return;
    this.#shown = new Set([...this.#shown, list]);
    closedOperations.close(list, details);
  }

  #hide(call: CallKey): void {
    if (!this.#shown.has(call)) return;
    this.#shown = new Set([...this.#shown].filter((shown) => shown !== call));
    this.#parts.closedOperations.open(call);
  }

  /** Lets the error say when the call is tried again. */
  #withRetry({ code, message, details }: PetqlError, retryAtMs: number): PetqlError {
    const retryAfterMs = Math.max(1, Math.ceil(retryAtMs - this.#nowMs));
    const again = retryIn(retryAfterMs, this.#parts.clock.now());
    return new PetqlError(code, message, { details: { ...details, ...again } });
  }

  get #nowMs(): number {
    return this.#parts.clock.elapsed();
  }
}

function hasClosed({ backoff }: FailedCall): boolean {
  return backoff.failures >= FAILURES_TO_CLOSE;
}
