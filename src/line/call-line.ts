import type { CallerRequest } from '../common/caller-request.ts';
import type { KeyLog } from '../common/log.ts';
import { SOON_MS } from '../common/time-limit.ts';
import type { Wait } from '../quota/account/wait.ts';
import { admit, admitAll, lateAtMs, lineOf, whyNoCall, withCalls } from './admission.ts';
import type { Admission, Before, Refuse, ServeStale } from './admission.ts';
import { CallRunner } from './call-runner.ts';
import type { Rejection } from '../closed/closed-for-key.ts';
import { Decisions } from './decisions.ts';
import type { KeyQuota, QuotaParts } from '../quota/key-quota.ts';
import type { LineCall, RequestClaim, CallSource, WaitingWrite } from './line-call.ts';
import { LineView } from './line-view.ts';
import { createRefusal } from './refusal.ts';
import type { GivenReason, Refusal, Refused } from './refusal.ts';
import { ReturnTimes } from './return-times.ts';

/** The verdicts about the line, until something changes. */
interface Walk {
  readonly view: LineView;
  readonly admissions: Map<LineCall, Admission<RequestClaim>>;
  after: Before;
}

const MAX_WAITING_WRITES = 1_000;

/**
 * The calls that one API key wants, in one line: writes in order of arrival, then what the planner wants for the reads, then those
 * for background work.
 *
 * 1. `reviewSoon` follows every event: once a turn of the event loop, for all changes in it, the line is reviewed.
 * 2. A review asks `admitAll` for the verdict about each call, ends the claims that are refused or served stale, and takes permits
 *    for the calls that stay.
 * 3. CallRunner gets the permits. Each of them takes the first call of the line at that moment, since a permit belongs to no call.
 * 4. The end of the call settles its permit in the account, and another review follows.
 */
export class CallLine {
  readonly #quota: KeyQuota;
  readonly #parts: QuotaParts;
  readonly #decisions: Decisions;
  readonly #returns = new ReturnTimes();
  readonly #runner: CallRunner;
  /** The writes that wait, in order of arrival. */
  readonly #writes = new Set<LineCall>();
  /** The reads of the key, by resource, in this order; behind the writes, but for those of background work. */
  readonly #readers: readonly CallSource[];
  #walked: Walk | undefined;
  #isReviewScheduled = false;
  /** Ends the claim that is late first, at `#lateAtMs` by `clock.elapsed()`. */
  #lateTimer: NodeJS.Timeout | undefined;
  #lateAtMs = Infinity;
  #isLooking = false;
  /** Set while petql stops; resolves once nothing is under way. */
  #stopped: PromiseWithResolvers<void> | undefined;

  /**
   * @param log gets a line for each decision.
   * @param readers what reads with the key: the line asks each of them for its calls, from its first review on.
   */
  constructor(quota: KeyQuota, parts: QuotaParts, log: KeyLog, readers: readonly CallSource[]) {
    this.#quota = quota;
    this.#parts = parts;
    this.#decisions = new Decisions(log);
    this.#readers = readers;
    this.#runner = new CallRunner(quota, parts, this.#decisions, this);
  }

  /** Lets a write stand in the line, or refuses it at once where it cannot wait at all. */
  write(write: WaitingWrite): void {
    if (write.request.signal()?.aborted) return this.#refuseWrite(write, 'aborted');
    if (this.#writes.size >= MAX_WAITING_WRITES) return this.#refuseWrite(write, 'crowded');
    // One that met a 429 goes before those that came after it.
    const later = [...this.#writes].filter(({ waitingSinceMs }) => waitingSinceMs > write.waitingSinceMs);
    for (const one of later) this.#writes.delete(one);
    for (const one of [write, ...later]) this.#writes.add(one);
    this.reviewSoon();
  }

  /** Ends the wait of a write whose client has left, if it still waits. */
  abort(write: WaitingWrite): void {
    if (!this.#writes.delete(write)) return;
    this.#refuseWrite(write, 'aborted');
    this.reviewSoon();
  }

  /** Reviews the line at the end of this turn of the event loop, for all changes in it. */
  reviewSoon(): void {
    this.#forgetVerdicts();
    if (this.#isReviewScheduled) return;
    this.#isReviewScheduled = true;
    setImmediate(() => this.#review());
  }

  /**
   * Returns why a stale entry is not refreshed now; undefined where a call for it may be sent at once.
   *
   * @param more calls that the same request needs before this one.
   * @param isPaid whether a read that waits pays for the call already.
   */
  whyNotRefresh(
    request: CallerRequest,
    { more, isPaid }: { readonly more: number; readonly isPaid: boolean },
  ): ServeStale['reason'] | undefined {
    const claim = { request: isPaid ? { ...request, visitor: undefined } : request, isRefresh: true };
    const view = this.#view();
    const { verdict } = admit({ claims: [claim], isNewRefresh: !isPaid }, view, this.#behind(more, claim.request));
    if (verdict.kind === 'serve-stale') return verdict.reason;
    return verdict.kind === 'wait' ? whyNoCall(view, { isQuotaLeft: verdict.wait.waitMs === 0 }) : undefined;
  }

  /**
   * Returns the minimum time until a call may go that only refreshes an entry, apart from those that wait.
   *
   * @param usableMs how long the entry may still be served: then its call needs no token of the refresh budget.
   */
  refreshWaitMs({ freshness, isBackground, visitor }: CallerRequest, usableMs: number): number {
    const view = this.#view();
    const quotaMs = view.hasShare(visitor, 0, 0) ? view.waitOf(0).waitMs : view.shareWaitOf(visitor, 0, 0).waitMs;
    const reserveMs = isBackground ? view.reserveWaitOf(0).waitMs : 0;
    const tokenMs = freshness.mayServeStaleToSaveCalls ? Math.min(view.refreshTokenWaitMs(visitor), usableMs) : 0;
    return Math.max(SOON_MS, view.turn.waitMs, quotaMs, reserveMs, tokenMs);
  }

  /** Returns how long the last of so many more calls of a request would wait, or be told to wait. */
  expectedWait(calls: number, request: CallerRequest): Wait {
    if (calls === 0) return { waitMs: 0, window: undefined };
    const claims = [{ request, isRefresh: false }];
    const { verdict } = admit({ claims }, this.#view(), this.#behind(calls - 1, request));
    return verdict.kind === 'wait' || verdict.kind === 'refuse' ? verdict.wait : { waitMs: 0, window: undefined };
  }

  /** How many calls wait. */
  get length(): number {
    let length = 0;
    for (const { verdict } of this.#walk().admissions.values()) {
      if (verdict.kind !== 'refuse' && verdict.kind !== 'serve-stale') length += 1;
    }
    return length;
  }

  /** Calls that were made so far. */
  get madeCalls(): number {
    return this.#runner.madeCalls;
  }

  /** Whether calls wait, are in flight, or are not settled. */
  isBusy(): boolean {
    return this.#runner.isBusy || this.#writes.size > 0 || this.length > 0;
  }

  /** Returns the refusal of a call that does not stand in the line. */
  refusal(kind: LineCall['kind'], reason: GivenReason): Refusal {
    const view = this.#view();
    const wait = view.waitOf(0);
    const retryAfterMs = this.#returns.retryAfterMs(wait.waitMs);
    return this.#createRefusal(kind, { reason, wait, retryAfterMs, quotaState: view.quotaState });
  }

  /** Takes the first call out of the line. What is left keeps its verdicts, as a permit and a slot go with the call. */
  removeFirst(): { readonly call: LineCall; readonly payer: RequestClaim } | undefined {
    this.#failWhereRejected();
    // Another key may have taken the try of a closed API.
    if (this.#quota.turn.isClosed) this.#forgetVerdicts();

    const walk = this.#walk();
    for (const [call, { isStartable, payer }] of walk.admissions) {
      if (!payer || !isStartable) continue;
      walk.admissions.delete(call);
      walk.after = withCalls(walk.after, -1, payer.request.visitor);
      if (call.kind === 'write') this.#writes.delete(call);
      return { call, payer };
    }
    return undefined;
  }

  /** Takes what a 401 does to the key. Those that wait hear of it with the next review. */
  recordRejection(rejection: Rejection): void {
    if (rejection !== 'reject' && rejection !== 'drop') return;
    for (const reader of this.#readers) reader.recordRejection(rejection === 'drop');
  }

  /** Ends all waits, by an error that concerns all calls of the key. */
  fail(error: unknown): void {
    for (const write of this.#writes) write.fail(error);
    this.#writes.clear();
    for (const reader of this.#readers) reader.fail(error);
    this.reviewSoon();
  }

  /** Refuses waiting and new calls, and resolves once the calls in flight are settled. */
  close(): Promise<void> {
    this.#stopped ??= Promise.withResolvers();
    this.#runner.close();
    this.#forgetVerdicts();
    this.#review();
    return this.#stopped.promise;
  }

  #refuseWrite(write: WaitingWrite, reason: GivenReason): void {
    const refusal = this.refusal('write', reason);
    this.#decisions.logRefusedWrite(write, write, refusal);
    write.refuse(write, refusal);
  }

  /** Ends the claims that wait in vain, and takes permits for the calls that stay. */
  #review(): void {
    this.#isReviewScheduled = false;
    // 1. What a 401 ends, and reads that no call can answer. Each end may change what is wanted.
    this.recordRejection(this.#quota.endDoubt());
    this.#failWhereRejected();
    for (const reader of this.#readers) reader.prepare();
    this.#askForList();
    while (this.#endClaims());

    // 2. The others get permits, and what a view is too old to refuse is looked at.
    const { admissions, after } = this.#walk();
    this.#runner.provide(after.startable);
    for (const { verdict } of admissions.values()) {
      if (verdict.kind === 'look') void this.#look();
    }
    this.#scheduleLate(admissions);
    if (this.#stopped && !this.isBusy()) this.#stopped.resolve();
  }

  /** The upstream may have rejected the key in another call meanwhile. */
  #failWhereRejected(): void {
    const rejection = this.#hasWaits ? this.#quota.rejection : undefined;
    if (rejection) this.fail(rejection);
  }

  get #hasWaits(): boolean {
    return this.#writes.size > 0 || this.#readers.some((reader) => reader.calls().length > 0);
  }

  /** Asks for a list where the next call has to be one and none is wanted, but not while the key is paused. */
  #askForList(): void {
    const { account, closed, isListDue } = this.#quota;
    if (!isListDue || this.#stopped || this.#runner.hasList || account.waitOf(0).waitMs > 0) return;
    const isWanted = [...this.#walk().admissions.keys()].some(({ isList }) => isList);
    if (isWanted || !(closed.isInDoubt || closed.askForList())) return;
    this.#readers[0]?.askForList();
  }

  /** What is wanted, or what there is for it, has changed. */
  #forgetVerdicts(): void {
    this.#walked = undefined;
    for (const reader of this.#readers) reader.discardPlan();
  }

  /** Returns the verdicts about the line as it is now. */
  #walk(): Walk {
    if (this.#walked) return this.#walked;
    const view = this.#view();
    const wanted = this.#readers.flatMap((reader) => reader.calls());
    const line = lineOf<LineCall>(this.#writes, wanted);
    this.#walked = { view, ...admitAll<RequestClaim, LineCall>(line, view) };
    return this.#walked;
  }

  #view(): LineView {
    const nowMs = this.#parts.clock.elapsed();
    return new LineView(this.#quota, {
      nowMs,
      isStopping: this.#stopped !== undefined,
      isTaking: this.#runner.isTaking,
      permits: this.#runner.permits,
      places: this.#runner.places,
      promisedReturns: this.#returns.count(nowMs),
    });
  }

  /** Returns what stands before a call behind the line, after so many more calls of the same visitor. */
  #behind(more: number, { visitor }: CallerRequest): Before {
    const { after } = this.#walk();
    return more === 0 ? after : withCalls(after, more, visitor);
  }

  /** Returns whether any claim has ended. */
  #endClaims(): boolean {
    const { admissions, view } = this.#walk();
    let hasEnded = false;
    for (const [call, { ended }] of admissions) {
      for (const [claim, ending] of ended) {
        hasEnded = true;
        if (ending.kind === 'serve-stale') call.serveStale(claim, ending.reason);
        else this.#refuse(call, claim, ending, view);
      }
    }
    if (hasEnded) this.#forgetVerdicts();
    return hasEnded;
  }

  #refuse(call: LineCall, claim: RequestClaim, { reason, wait }: Refuse, { nowMs, quotaState }: LineView): void {
    // One call answers all of its claims, so that the first one counts for them.
    const isCounted = claim === call.claims[0];
    const retryAfterMs =
      reason === 'quota'
        ? this.#returns.promiseReturn(claim.request, wait.waitMs, { nowMs, isCounted })
        : this.#returns.retryAfterMs(wait.waitMs);
    const refusal = this.#createRefusal(call.kind, { reason, wait, retryAfterMs, quotaState });

    if (call.kind === 'write') {
      this.#writes.delete(call);
      this.#decisions.logRefusedWrite(call, claim, refusal);
    }
    call.refuse(claim, refusal);
  }

  /** Makes a refusal, and counts it: but not that of a client that left, since the outcome of its operation says so. */
  #createRefusal(kind: LineCall['kind'], refused: Omit<Refused, 'nowMs'>): Refusal {
    const { clock, events } = this.#parts;
    const refusal = createRefusal({ ...refused, nowMs: clock.now() });
    if (refusal.reason !== 'aborted') events?.refused({ kind, reason: refusal.reason });
    return refusal;
  }

  /** Reads the account, which another replica may have changed, before anybody is refused by it. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    await this.#quota.account.read();
    this.#isLooking = false;
    this.reviewSoon();
  }

  /** Reviews the line when the next claim is late, or when there may be a call for background work. */
  #scheduleLate(admissions: Walk['admissions']): void {
    const nowMs = this.#parts.clock.elapsed();
    let nextMs = this.#quota.closed.doubtEndsAtMs;
    for (const [{ claims }, { payer, verdict }] of admissions) {
      if (verdict.kind === 'wait' && !payer) nextMs = Math.min(nextMs, nowMs + verdict.wait.waitMs);
      for (const claim of claims) {
        const atMs = lateAtMs(claim, verdict.kind === 'go');
        if (atMs > nowMs) nextMs = Math.min(nextMs, atMs);
      }
    }
    if (nextMs === this.#lateAtMs) return;

    clearTimeout(this.#lateTimer);
    this.#lateAtMs = nextMs;
    if (nextMs === Infinity) return;
    this.#lateTimer = setTimeout(
      () => {
        this.#lateAtMs = Infinity;
        this.reviewSoon();
      },
      Math.ceil(nextMs - nowMs),
    );
  }
}
