import type { CallAnswer } from '../common/call-answer.ts';
import type { Clock } from '../common/clock.ts';
import { nextBackoff } from './backoff.ts';
import type { Backoff } from './backoff.ts';
import type { ClosedApi, JudgedCall, Key, Turn } from './closed-api.ts';
import type { ClosedOperations } from './closed-operations.ts';
import { ASK_GETS_EVERY_MS, ASK_LISTS_EVERY_MS, EVIDENCE_MS, MAX_DOUBT_MS } from '../common/call-times.ts';

/** A call of the key that has ended. */
export interface JudgedCallOfKey extends JudgedCall {
  readonly meaning: CallAnswer['meaning'];
  /** What a get was for, where a list of the key has shown it within a minute. */
  readonly shownInput: string | undefined;
}

/** What a 401 does to a proven key: nothing yet, or no call for a while, with or without its cached data. */
export type Rejection = 'none' | 'withhold' | 'reject' | 'drop';

/** A 401 of a proven key that lists are to confirm. */
interface Doubt {
  readonly operation: string;
  readonly sinceMs: number;
  /** How many lists were answered 401 since. */
  readonly lists: number;
}

export const GET = 'getPet';
/** So many pets that lists show have to be without a route: a client may ask for an id that a router does not take. */
export const PETS_WITHOUT_ROUTE = 2;
/** One node of several may answer 401. */
const LISTS_TO_REJECT = 2;
/** After so many rejections in a row the cached data is dropped. */
const REJECTIONS_TO_DROP = 2;

const NO_PETS: ReadonlySet<string> = new Set();

/** What is closed for one API key, and which of its calls is tried next: where the API or its gets are closed, after a 429 and a 401. */
export class ClosedForKey {
  readonly #api: ClosedApi;
  readonly #elapsed: Clock['elapsed'];
  readonly #shown: ClosedOperations;
  /** While gets are closed. */
  #gets: Backoff | undefined;
  #isTryingGet = false;
  #withoutRoute: ReadonlySet<string> = NO_PETS;
  /** Whether the probe after a 429 has shown nothing: a list is the next one. */
  #isListNext = false;
  #listsRefusedAtMs = -Infinity;
  #hasListed = false;
  #listsInFlight = 0;
  #listAskedAtMs = -Infinity;
  #getsAskedAtMs = -Infinity;
  /** Rejections in a row, and when the last 401 came that counts. */
  #rejections = 0;
  #rejectedAtMs = -Infinity;
  #details401: object = {};
  #doubt: Doubt | undefined;
  /** Operations that are answered 401 while others work, and since when. */
  #settledAtMs: Map<string, number> | undefined;

  constructor(api: ClosedApi, { elapsed }: Pick<Clock, 'elapsed'>, shown: ClosedOperations) {
    this.#api = api;
    this.#elapsed = elapsed;
    this.#shown = shown;
  }

  /** Returns which calls of the key may be sent now. */
  turnOf(key: Key, isAfter429: boolean): Turn {
    const turn = this.#api.turnOf(key, this.mayList);
    return this.#isListTurn(isAfter429) ? { ...turn, of: 'lists' } : turn;
  }

  /** Whether a list has to be called for, though perhaps none is wanted. */
  isListDue(key: Key, isAfter429: boolean): boolean {
    return this.#isListTurn(isAfter429) || (this.mayList && this.#api.isListDue(key));
  }

  /** Whether petql may ask for a list itself, which it then does. */
  askForList(): boolean {
    const nowMs = this.#elapsed();
    if (nowMs < this.#listAskedAtMs + ASK_LISTS_EVERY_MS) return false;
    this.#listAskedAtMs = nowMs;
    return true;
  }

  /** Whether petql may ask for pets that lists have shown, to find out whether gets have a route, which it then does. */
  askForGets(): boolean {
    const nowMs = this.#elapsed();
    if (this.#gets || nowMs < this.#getsAskedAtMs + ASK_GETS_EVERY_MS) return false;
    this.#getsAskedAtMs = nowMs;
    return true;
  }

  isApiClosed(key: Key): boolean {
    return this.#api.isClosedFor(key);
  }

  /** Whether a get may be sent: while they are open, or as the try that finds out. */
  get mayGet(): boolean {
    return !this.#gets || (!this.#isTryingGet && this.#elapsed() >= this.#gets.retryAtMs);
  }

  get areGetsOpen(): boolean {
    return !this.#gets;
  }

  /** A key whose last list was answered 401 or 403 may have no right to list. */
  get mayList(): boolean {
    return this.#elapsed() >= this.#listsRefusedAtMs + EVIDENCE_MS;
  }

  /** Whether a 401 or 403 is about the key, and not about what a client chose or about the right to list. */
  isDecisive(isList: boolean): boolean {
    return isList ? this.#hasListed : !this.mayList;
  }

  /** What the log says of the latest 401 that counts. */
  get details401(): object {
    return this.#details401;
  }

  /** Whether the cached data of the key is withheld after a 401. */
  get isWithheld(): boolean {
    return this.#doubt !== undefined || this.#rejections > 0;
  }

  /** Whether a list is to confirm the 401. */
  get isInDoubt(): boolean {
    return this.#doubt !== undefined;
  }

  /** When a doubt ends without a list, by `clock.elapsed()`. A list in flight is waited for, however slow it is. */
  get doubtEndsAtMs(): number {
    return this.#doubt && this.#listsInFlight === 0 ? this.#doubt.sinceMs + MAX_DOUBT_MS : Infinity;
  }

  /** Records that a call is sent. Returns whether it is the try of a closed API. */
  begin(operation: string, { key, isList }: { readonly key: Key; readonly isList: boolean }): boolean {
    if (isList) this.#listsInFlight += 1;
    if (operation === GET && this.#gets) this.#isTryingGet = true;
    return this.#api.begin(key, isList);
  }

  /** Records how a call has ended. */
  end(call: JudgedCallOfKey, isTry: boolean): void {
    this.#api.end(call, isTry);
    const { isList, meaning, operation } = call;
    if (isList) this.#listsInFlight -= 1;
    const isRefused = meaning === 'unauthenticated' || meaning === 'forbidden';
    if (isList) this.#listsRefusedAtMs = isRefused ? this.#elapsed() : -Infinity;
    if (isList) this.#hasListed ||= meaning === 'accepted';
    if (operation === GET) this.#endGet(call);
    if (meaning === 'accepted') this.#recordAcceptance(call);
  }

  /** Records a list that another replica got, by when it was sent. */
  recordElsewhere(sentAtMs: number): void {
    this.#api.recordElsewhere(sentAtMs);
  }

  /** Records that a call was not made: petql is at fault. */
  skip(operation: string, { isList, isTry }: { readonly isList: boolean; readonly isTry: boolean }): void {
    if (isList) this.#listsInFlight -= 1;
    if (operation === GET) this.#isTryingGet = false;
    this.#api.skip(isList, isTry);
  }

  /**
   * Records that the probe after a 429 has ended. Returns whether a list is the next one: it was none, and has shown nothing.
   *
   * @param isConclusive whether the key is free again, or paused.
   */
  endProbe({ isConclusive, isList }: { readonly isConclusive: boolean; readonly isList: boolean }): boolean {
    this.#isListNext = !isConclusive && !isList && this.mayList;
    return this.#isListNext;
  }

  /**
   * Records a 401 of a proven key. It withholds the key's data, and lists go before all other calls: once two of them are answered 401
   * too, the key is rejected.
   */
  recordUnauthenticated({ details, isList, operation, sentAtMs }: JudgedCall): Rejection {
    const nowMs = this.#elapsed();
    if (nowMs < (this.#settledAtMs?.get(operation) ?? -Infinity) + EVIDENCE_MS) return 'none';
    // A call from before is the same evidence.
    if (sentAtMs < this.#rejectedAtMs) return 'none';
    if (this.#doubt && !isList && this.mayList) return 'none';

    this.#rejectedAtMs = nowMs;
    this.#details401 = details;
    if (!this.#doubt) {
      this.#doubt = { operation, sinceMs: nowMs, lists: 0 };
      return 'withhold';
    }
    const lists = this.#doubt.lists + 1;
    if (lists >= LISTS_TO_REJECT) return this.#reject();
    this.#doubt = { ...this.#doubt, lists };
    return 'none';
  }

  /** Ends a doubt that no list has ended in time: the 401 counts. */
  endDoubt(): Rejection {
    return this.#elapsed() < this.doubtEndsAtMs ? 'none' : this.#reject();
  }

  /** Records that the gets of the key concern nobody any more. */
  free(): void {
    if (this.#gets) this.#shown.open(GET);
  }

  #isListTurn(isAfter429: boolean): boolean {
    return this.mayList && (this.#doubt !== undefined || (isAfter429 && this.#isListNext));
  }

  #reject(): Rejection {
    this.#doubt = undefined;
    this.#rejections += 1;
    this.#rejectedAtMs = this.#elapsed();
    return this.#rejections >= REJECTIONS_TO_DROP ? 'drop' : 'reject';
  }

  #recordAcceptance({ operation, sentAtMs }: JudgedCall): void {
    this.#settledAtMs?.delete(operation);
    if (!this.isWithheld || sentAtMs < this.#rejectedAtMs) return;
    // The key is accepted, so the 401 was about the operation.
    if (this.#doubt && this.#doubt.operation !== operation)
      (this.#settledAtMs ??= new Map()).set(this.#doubt.operation, this.#elapsed());
    this.#rejections = 0;
    this.#doubt = undefined;
  }

  #endGet({ details, evidence, sentAtMs, shownInput }: JudgedCallOfKey): void {
    this.#isTryingGet = false;
    if (evidence === 'works') return this.#openGets();

    const hasNoRoute = evidence === 'no-route' && shownInput !== undefined;
    if (hasNoRoute) this.#withoutRoute = new Set([...this.#withoutRoute, shownInput]);
    // Each try moves the next one, whatever it shows.
    if (!this.#gets && this.#withoutRoute.size < PETS_WITHOUT_ROUTE) return;
    if (!this.#gets) this.#shown.close(GET, details);
    this.#gets = nextBackoff(this.#gets, { sentAtMs, nowMs: this.#elapsed() });
  }

  #openGets(): void {
    this.#withoutRoute = NO_PETS;
    if (!this.#gets) return;
    this.#gets = undefined;
    this.#shown.open(GET);
  }
}
