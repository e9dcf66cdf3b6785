import type { Evidence } from '../common/call-answer.ts';
import type { Clock } from '../common/clock.ts';
import type { ReplicaView } from '../store/replicas.ts';
import { isForgotten, nextBackoff } from './backoff.ts';
import type { Backoff } from './backoff.ts';
import { API } from './closed-operations.ts';
import type { ClosedOperations } from './closed-operations.ts';
import {
  EVIDENCE_MS,
  HELD_OPEN_MS,
  MAX_API_BACKOFF_MS,
  OTHERS_FIRST_MS,
  TRIES_APART_MS,
} from '../common/call-times.ts';

/** Whose calls they are. */
export interface Key {
  /** The hash of the API key. */
  readonly name: string;
  /** Whether the upstream has accepted it: anybody can make up keys. */
  readonly isProven: boolean;
}

/** A call that has ended. */
export interface JudgedCall {
  /** A list by its name, `getPet`, or a write. */
  readonly operation: string;
  /** Whether it is a list: it has no input that a client chose, so it alone speaks for the API. */
  readonly isList: boolean;
  /** Whether it was an early retry, which belongs to the try before it. */
  readonly isRetry: boolean;
  /** By `clock.elapsed()`. */
  readonly sentAtMs: number;
  readonly evidence: Evidence;
  readonly key: Key;
  /** What the log says of its failure. */
  readonly details: object;
}

/** Which calls may be sent now. */
export interface Turn {
  /** How many; Infinity while nothing is closed. */
  readonly calls: number;
  readonly of: 'all' | 'lists' | 'others';
  /** Whether the API is closed: no stale entry is refreshed by a call that may not go. */
  readonly isClosed: boolean;
  /** Whether calls that may not go are refused at once. Else they wait. */
  readonly isRefusing: boolean;
  /** The time until the next try. */
  readonly waitMs: number;
}

/** Tries of lists that failed in a row, of proven keys or of others. */
interface FailedLists {
  readonly tries: number;
  readonly sentAtMs: number;
  readonly endedAtMs: number;
  /** When the try before it was sent, or this one where it is the first. */
  readonly beforeSentAtMs: number;
  /** Whose lists they were: all keys, where several failed. */
  readonly of: string;
  readonly isProven: boolean;
}

export const OPEN: Turn = { calls: Infinity, of: 'all', isClosed: false, isRefusing: false, waitMs: 0 };

const FAILED_TRIES = 2;
/** After so many failed calls in a row, petql asks for a list. */
const FAILURES_TO_ASK = 3;
const ALL_KEYS = 'all';
/** Keys that are not proven count as one. */
const UNPROVEN_KEYS = 'unproven';

/**
 * Whether the pet API is closed: after two failed tries of lists, the second sent a second after the first ended, where no other call
 * works. Then one call goes at a time, a list and another one in turn, and a success of either opens it. Where other keys are in use,
 * one key alone closes it for itself.
 */
export class ClosedApi {
  readonly #elapsed: Clock['elapsed'];
  readonly #replicas: Pick<ReplicaView, 'count'>;
  readonly #shown: ClosedOperations;
  /** Whose calls it is closed for; undefined while it is open. */
  #closedFor: string | undefined;
  #closedAtMs = -Infinity;
  #failedLists: FailedLists | undefined;
  #failuresInARow = 0;
  /** Whose call failed last. */
  #failedKey: string | undefined;
  #backoff: Backoff | undefined;
  #isTrying = false;
  #listsInFlight = 0;
  /** Tries since it was closed. */
  #tries = 0;
  /** Whether another call has failed as the last try. */
  #isListNext = false;
  /** When a call that was no list was sent last, and when one was that failed. */
  #nonListSentAtMs = -Infinity;
  #nonListFailedSentAtMs = -Infinity;
  /** When the latest call that worked was sent, and when a call worked last while lists failed. */
  #workedSentAtMs = -Infinity;
  #workedBesideAtMs = -Infinity;
  /** The proven key whose call ended last, and when. */
  #lastKey: string | undefined;
  #provenAtMs = -Infinity;
  /** When the last call before it ended that was another proven key's: as long as two are in use, one alone closes nothing for both. */
  #secondKeyAtMs = -Infinity;

  constructor({ elapsed }: Pick<Clock, 'elapsed'>, replicas: Pick<ReplicaView, 'count'>, shown: ClosedOperations) {
    this.#elapsed = elapsed;
    this.#replicas = replicas;
    this.#shown = shown;
  }

  /** @param mayList whether the key may list. Otherwise its other calls are its tries. */
  turnOf(key: Key, mayList: boolean): Turn {
    this.#forget();
    if (!this.isClosedFor(key)) return OPEN;
    const dueAtMs = this.#backoff?.retryAtMs ?? -Infinity;
    const waitMs = Math.max(0, dueAtMs - this.#elapsed());
    const isOtherDue = this.#isOtherUntried && waitMs > 0;
    const mayGo = this.#mayTry(key) && !this.#isTrying && (waitMs === 0 || isOtherDue);
    return {
      calls: mayGo ? 1 : 0,
      of: !mayList || isOtherDue ? 'others' : this.#nextOf(dueAtMs),
      isClosed: true,
      // Those that wait already hear first what the next try shows.
      isRefusing: !this.#isOtherUntried || !this.#mayTry(key),
      waitMs,
    };
  }

  isClosedFor({ name, isProven }: Key): boolean {
    return this.#closedFor === ALL_KEYS || this.#closedFor === (isProven ? name : UNPROVEN_KEYS);
  }

  /** Whether a list is needed, though perhaps none is wanted. */
  isListDue(key: Key): boolean {
    if (!this.#mayTry(key) || this.#isTrying || this.#listsInFlight > 0) return false;
    const isDue = this.#elapsed() >= (this.#backoff?.retryAtMs ?? -Infinity);
    if (!isDue) return false;
    if (this.isClosedFor(key)) return this.#isListNext;
    return this.#failuresInARow >= FAILURES_TO_ASK && this.#failedKey === key.name;
  }

  /** Records that a call is sent. Returns whether it is the try of a closed API. */
  begin(key: Key, isList: boolean): boolean {
    this.#forget();
    if (isList) this.#listsInFlight += 1;
    else this.#nonListSentAtMs = this.#elapsed();
    const isTry = this.isClosedFor(key) && this.#mayTry(key);
    this.#isTrying ||= isTry;
    return isTry;
  }

  /** Records how a call has ended. */
  end(call: JudgedCall, isTry: boolean): void {
    const { evidence, isList, key } = call;
    this.skip(isList, isTry);
    if (isTry) this.#tries += 1;
    if (!this.#mayTry(key)) return;
    const isAsked = isList && this.isListDue(key);
    if (key.isProven) this.#recordKey(key.name);
    if (evidence === 'works') return this.#recordSuccess(call);

    const isFailedList = isList && evidence === 'fails';
    if (evidence === 'fails' && !isList)
      this.#nonListFailedSentAtMs = Math.max(this.#nonListFailedSentAtMs, call.sentAtMs);
    if (evidence === 'fails' && !call.isRetry) {
      this.#failuresInARow += 1;
      this.#failedKey = key.name;
    }
    const isNewTry = isFailedList && this.#recordFailedList(call);
    // Each try moves the next one, whatever it shows.
    if (isTry || isAsked || (isNewTry && !this.isClosedFor(key))) this.#spend(call);
    if (isFailedList) this.#closeWhereNothingWorks(call);
  }

  /** Records that a call is over, whatever it shows. */
  skip(isList: boolean, isTry: boolean): void {
    if (isList) this.#listsInFlight -= 1;
    if (isTry) this.#isTrying = false;
  }

  /** Records a list that another replica got, by when it was sent. */
  recordElsewhere(sentAtMs: number): void {
    if (sentAtMs >= this.#closedAtMs) this.#open();
  }

  /** Where nothing was tried for long, nobody knows that it still fails. */
  #forget(): void {
    if (!this.#backoff || !isForgotten(this.#backoff, this.#elapsed())) return;
    this.#failedLists = undefined;
    this.#failuresInARow = 0;
    this.#open();
  }

  /** Where no call of a proven key has ended for ten minutes, as after a restart, the other keys find out. */
  #mayTry({ isProven }: Key): boolean {
    return isProven || this.#elapsed() > this.#provenAtMs + EVIDENCE_MS;
  }

  /** Whether lists have just closed it, and no other call has failed since they began to fail: one may go at once, without the backoff. */
  get #isOtherUntried(): boolean {
    return this.#tries === 0 && this.#nonListFailedSentAtMs < (this.#failedLists?.beforeSentAtMs ?? -Infinity);
  }

  /** After a try of another call, a list; else any call, but for five seconds other calls alone where they were sent lately. */
  #nextOf(dueAtMs: number): Turn['of'] {
    if (this.#isListNext) return 'lists';
    const nowMs = this.#elapsed();
    const isOtherLikely = nowMs < this.#nonListSentAtMs + EVIDENCE_MS && nowMs < dueAtMs + OTHERS_FIRST_MS;
    return isOtherLikely ? 'others' : 'all';
  }

  #recordKey(name: string): void {
    if (this.#lastKey !== undefined && name !== this.#lastKey) this.#secondKeyAtMs = this.#provenAtMs;
    this.#lastKey = name;
    this.#provenAtMs = this.#elapsed();
  }

  #recordSuccess({ isList, sentAtMs }: JudgedCall): void {
    // A call from before the failures does not show the state since.
    if (sentAtMs < (this.#failedLists?.beforeSentAtMs ?? -Infinity)) return;
    this.#failuresInARow = 0;
    this.#workedSentAtMs = Math.max(this.#workedSentAtMs, sentAtMs);
    if (isList) this.#failedLists = undefined;
    else if (this.#failedLists) this.#workedBesideAtMs = this.#elapsed();
    this.#open();
  }

  /** Returns whether it was another try than the one before it. */
  #recordFailedList({ sentAtMs, key }: JudgedCall): boolean {
    const of = key.isProven ? key.name : UNPROVEN_KEYS;
    // What keys show that are not proven closes nothing for proven ones.
    const before = this.#failedLists?.isProven === key.isProven ? this.#failedLists : undefined;
    if (!before) {
      const endedAtMs = this.#elapsed();
      this.#failedLists = { tries: 1, sentAtMs, endedAtMs, beforeSentAtMs: sentAtMs, of, isProven: key.isProven };
      return true;
    }

    const together = { ...before, of: before.of === of ? of : ALL_KEYS };
    const isNewTry = sentAtMs >= before.endedAtMs + TRIES_APART_MS;
    const next = { tries: before.tries + 1, sentAtMs, endedAtMs: this.#elapsed(), beforeSentAtMs: before.sentAtMs };
    this.#failedLists = isNewTry ? { ...together, ...next } : together;
    return isNewTry;
  }

  #closeWhereNothingWorks({ details }: JudgedCall): void {
    const { tries, of, isProven, beforeSentAtMs } = this.#failedLists as FailedLists;
    const nowMs = this.#elapsed();
    const isHeldOpen = nowMs < this.#workedBesideAtMs + HELD_OPEN_MS || this.#workedSentAtMs >= beforeSentAtMs;
    if (tries < FAILED_TRIES || isHeldOpen) return;

    const isOnlyKey = isProven && nowMs > this.#secondKeyAtMs + EVIDENCE_MS;
    const before = this.#closedFor;
    this.#closedFor = isOnlyKey ? ALL_KEYS : of;
    if (before === this.#closedFor) return;
    if (before === undefined) this.#tries = 0;
    this.#closedAtMs = nowMs;
    // Where other keys are in use, it is the key that fails.
    const isShown = this.#closedFor === ALL_KEYS || !isProven;
    if (isShown && !this.#shown.has(API)) this.#shown.close(API, details);
  }

  #spend({ isList, sentAtMs }: JudgedCall): void {
    this.#isListNext = !isList;
    const tried = { sentAtMs, nowMs: this.#elapsed(), maxMs: MAX_API_BACKOFF_MS, replicas: this.#replicas.count };
    this.#backoff = nextBackoff(this.#backoff, tried);
  }

  #open(): void {
    this.#backoff = undefined;
    this.#isListNext = false;
    if (this.#closedFor === undefined) return;
    this.#closedFor = undefined;
    this.#shown.open(API);
  }
}
