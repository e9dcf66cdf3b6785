import { MOMENT_MS, SOON_MS, waitAtMost } from '../common/time-limit.ts';
import { callEndOf } from '../quota/account/call-end.ts';
import type { CallEnd } from '../quota/account/call-end.ts';
import type { Permit } from '../quota/account/format.ts';
import { CallQueue } from './call-queue.ts';
import type { JudgedCallOfKey, Rejection } from '../closed/closed-for-key.ts';
import type { Decisions } from './decisions.ts';
import type { LineAnswer, LineCall, RequestClaim } from './line-call.ts';
import type { KeyQuota, QuotaParts } from '../quota/key-quota.ts';
import { MAX_IN_FLIGHT, Places } from './places.ts';
import { FIRST_PROBE_POLL_MS, MAX_PROBE_POLL_MS } from '../common/call-times.ts';

/** Where the calls come from. */
interface RunnerHost {
  /** Takes the first call, for which there is a permit; undefined where none is wanted any more. */
  removeFirst(): { readonly call: LineCall; readonly payer: RequestClaim } | undefined;
  /** Records that the permits or the account have changed. */
  reviewSoon(): void;
  /** Takes what a 401 does to the key. */
  recordRejection(rejection: Rejection): void;
  /** Ends all waits by an error that concerns all calls of the key. */
  fail(error: unknown): void;
}

/** The permits of one key, from their grant by the account to their settlement, and the calls that are made with them. */
export class CallRunner {
  readonly #quota: KeyQuota;
  readonly #parts: QuotaParts;
  readonly #decisions: Decisions;
  readonly #line: RunnerHost;
  /** The places of the calls that have their permit, up to their settlement. */
  readonly places: Places;
  /** Created by the first call, since it takes 5 KB: a caller that is served from the cache needs none. */
  #queue: CallQueue | undefined;
  /** Granted and unused. Each is a job of the queue, and belongs to no call. */
  readonly #permits: Permit[] = [];
  /** Settlements that the account has not taken. */
  #settling = 0;
  #isTaking = false;
  /** Calls that may go, and need permits. */
  #calls = 0;
  /** By `clock.elapsed()`: no permit is free before this. */
  #waitUntilMs = 0;
  /** Ends the wait for permits. */
  #waitTimer: NodeJS.Timeout | undefined;
  /** How often in a row the account had to wait for the success of a call of another replica. */
  #polls = 0;
  /** Whether a 429 came while permits were taken. */
  #hasMet429 = false;
  #madeCalls = 0;
  /** Lists in flight. */
  #lists = 0;
  /** Reviews the line when a call hangs, whose place is the next one's. */
  #hangTimer: NodeJS.Timeout | undefined;

  constructor(quota: KeyQuota, parts: QuotaParts, decisions: Decisions, line: RunnerHost) {
    this.#quota = quota;
    this.#parts = parts;
    this.#decisions = decisions;
    this.#line = line;
    this.places = new Places(parts.clock);
  }

  /** How many permits are granted and unused. */
  get permits(): number {
    return this.#permits.length;
  }

  /** Whether the account is being read, and may count permits that are not here yet. */
  get isTaking(): boolean {
    return this.#isTaking;
  }

  /** Whether a permit is not settled. */
  get isBusy(): boolean {
    return this.#isTaking || this.#permits.length + this.places.taken + this.#settling > 0;
  }

  /** Whether a list is in flight. */
  get hasList(): boolean {
    return this.#lists > 0;
  }

  /** Calls that were made so far. */
  get madeCalls(): number {
    return this.#madeCalls;
  }

  /** Gets permits for so many calls, as far as they may be in flight, and refunds those that none needs: other replicas may. */
  provide(calls: number): void {
    this.#calls = calls;
    this.#giveBack(this.#permits.length - calls);
    if (this.#missing <= 0 || this.#isTaking) return;

    clearTimeout(this.#waitTimer);
    const leftMs = this.#waitUntilMs - this.#parts.clock.elapsed();
    if (leftMs > 0) this.#waitTimer = setTimeout(() => this.#line.reviewSoon(), Math.ceil(leftMs));
    else void this.#take();
  }

  /** Ends the wait for permits. */
  close(): void {
    clearTimeout(this.#waitTimer);
    clearTimeout(this.#hangTimer);
  }

  get #missing(): number {
    return Math.min(this.#calls, this.places.spare(this.#minuteLimit)) - this.#permits.length;
  }

  get #minuteLimit(): number {
    return this.#quota.account.state?.minute.limit ?? 0;
  }

  #reviewWhenOneHangs(): void {
    const inMs = this.places.nextHangsAtMs - this.#parts.clock.elapsed();
    if (this.#hangTimer || inMs === Infinity) return;
    const review = () => {
      this.#hangTimer = undefined;
      this.#line.reviewSoon();
      this.#reviewWhenOneHangs();
    };
    this.#hangTimer = setTimeout(review, Math.ceil(inMs));
  }

  /** Refunds permits that nobody uses. */
  #giveBack(count: number): void {
    if (count <= 0) return;
    for (const permit of this.#permits.splice(-count)) void this.#settle(permit, { kind: 'unused' });
  }

  async #take(): Promise<void> {
    const { clock } = this.#parts;
    this.#isTaking = true;
    this.#hasMet429 = false;
    let wanted = 1;
    // Redis may take its time, and others come meanwhile.
    const countWanted = () => (wanted = Math.max(1, this.#missing));
    try {
      const taken = await this.#quota.account.take(countWanted);
      this.#decisions.logTaken(wanted, taken);
      this.#polls = taken.wait?.by === 'probe' && taken.permits.length === 0 ? this.#polls + 1 : 0;
      this.#waitUntilMs = taken.wait ? clock.elapsed() + this.#boundedMs(taken.wait.waitMs) : 0;
      this.#receive(taken.permits);
    } catch (error) {
      this.#waitUntilMs = clock.elapsed() + SOON_MS;
      this.#line.fail(error);
    }
    this.#isTaking = false;
    this.#line.reviewSoon();
  }

  #boundedMs(waitMs: number): number {
    // Redis may be available again, or another replica may have freed permits.
    const maxMs =
      this.#polls === 0 ? SOON_MS : Math.min(FIRST_PROBE_POLL_MS * 2 ** (this.#polls - 1), MAX_PROBE_POLL_MS);
    return Math.max(1, Math.min(waitMs, maxMs));
  }

  #receive(permits: readonly Permit[]): void {
    this.#permits.push(...permits);
    // A permit that was granted before a 429 is not used after it.
    if (this.#hasMet429) return this.#giveBack(this.#permits.length);

    for (let job = 0; job < permits.length; job += 1) {
      this.#queue ??= new CallQueue(MAX_IN_FLIGHT);
      this.#queue.schedule(() => this.#run());
    }
  }

  /** A job starts: the first call of the line gets a permit, unless they were all given back meanwhile. */
  async #run(): Promise<void> {
    if (this.#permits.length === 0) return;
    const next = this.#line.removeFirst();
    if (!next) return this.#giveBack(1);

    const permit = this.#permits.shift() as Permit;
    const free = this.places.occupy(next.payer.request.visitor, this.#minuteLimit);
    this.#reviewWhenOneHangs();
    await this.#make(next.call, next.payer, permit);
    free();
    this.#line.reviewSoon();
  }

  /** The life of a call that has its permit. Never rejects. */
  async #make(call: LineCall, payer: RequestClaim, permit: Permit): Promise<void> {
    const { clock, events } = this.#parts;
    const { request } = payer;
    const { isList, operation } = call;
    const quota = this.#quota;

    // 1. Charge: the next decision goes by it.
    const sentAtMs = clock.elapsed();
    const waitedMs = sentAtMs - call.waitingSinceMs;
    quota.charge(request.visitor, sentAtMs);
    const isTry = quota.closed.begin(operation, { key: quota, isList });
    events?.waited({ kind: call.kind, waitedMs });
    this.#decisions.logCall(call, request, waitedMs);

    try {
      // 2. Send.
      const answer = await this.#send(call, payer);
      const tookMs = clock.elapsed() - sentAtMs;
      this.#decisions.logFailure(call, request.id, answer, tookMs);

      // 3. Judge: how the permit ends, what the response closes or opens, and what it does to the key.
      const { permit: settled, end } = this.#endOf(call, permit, answer, tookMs);
      const ended = this.#endedCall(call, answer, sentAtMs);
      quota.closed.end(ended, isTry);
      if (answer.sent) this.#line.recordRejection(this.#judgeKey(ended));
      else quota.refund(request.visitor, sentAtMs);

      // 4. Settle: the client's next operation is counted after this call.
      const isNews = quota.account.isNews(end);
      const settling = this.#settle(settled, end);
      if (settling && isNews) await waitAtMost(settling, MOMENT_MS);

      // 5. Tell those that wait for it.
      call.receive(answer);
    } catch (error) {
      void this.#settle(permit, { kind: 'lost' });
      quota.closed.skip(operation, { isList, isTry });
      call.fail(error);
    }
  }

  async #send(call: LineCall, payer: RequestClaim): Promise<LineAnswer> {
    const lists = call.isList ? 1 : 0;
    this.#lists += lists;
    try {
      return await call.send(payer);
    } finally {
      this.#lists -= lists;
    }
  }

  /** Returns how a call has ended. A probe after a 429 that shows nothing leaves its place to a list. */
  #endOf(call: LineCall, permit: Permit, answer: LineAnswer, tookMs: number): { permit: Permit; end: CallEnd } {
    const { closed } = this.#quota;
    const isDecisive = closed.isDecisive(call.isList);
    const end = callEndOf(permit, answer, { tookMs, nowMs: this.#parts.clock.now(), isDecisive });
    if (!permit.isProbe || end.kind === 'unused') return { permit, end };

    const isConclusive = end.kind === 'succeeded' || end.kind === 'rate-limited';
    const isListNext = closed.endProbe({ isConclusive, isList: call.isList });
    // At once only after the first one, since a storm of failures must not get two calls each time.
    const isPassedOn = isListNext && this.#quota.account.state?.incidents === 1;
    return { permit: isPassedOn ? { ...permit, isProbe: false } : permit, end };
  }

  #endedCall(
    { isList, isRetry, operation, shownInput }: LineCall,
    answer: LineAnswer,
    sentAtMs: number,
  ): JudgedCallOfKey {
    const { evidence, failure = {}, meaning, status } = answer;
    const { name, isProven } = this.#quota;
    const key = { name, isProven };
    const details = { status, ...failure };
    return { operation, isList, isRetry, shownInput, sentAtMs, evidence, meaning, key, details };
  }

  /** Records what a call that was sent shows of the key. Returns what it does to it. */
  #judgeKey(call: JudgedCallOfKey): Rejection {
    const { isList, isRetry, key, meaning } = call;
    const quota = this.#quota;
    this.#madeCalls += 1;
    if (!isRetry && key.isProven) quota.retryBudget.recordCall();
    if (meaning === 'accepted') quota.recordAcceptance();
    // Right after a 429 it may be a ban, which the account finds out.
    if (quota.isAfter429) return 'none';
    if (meaning === 'forbidden' && isList) quota.recordForbiddenList();
    return meaning === 'unauthenticated' ? quota.recordUnauthenticated(call) : 'none';
  }

  /** Settles a permit in the account, which may free others. Returns undefined where it is settled at once. */
  #settle(permit: Permit, end: CallEnd): Promise<void> | undefined {
    if (end.kind === 'succeeded') this.places.recordSuccess(this.#minuteLimit);
    if (end.kind === 'rate-limited') {
      this.places.reset();
      this.#hasMet429 = true;
      this.#giveBack(this.#permits.length);
    }

    this.#waitUntilMs = 0;
    const settling = this.#quota.account.settle(permit, end);
    if (!settling) {
      this.#recordSettled(end);
      return undefined;
    }

    this.#settling += 1;
    return settling.then(() => {
      this.#settling -= 1;
      this.#recordSettled(end);
    });
  }

  #recordSettled(end: CallEnd): void {
    const { state } = this.#quota.account;
    this.#decisions.warnOfPause(state, end);
    this.#decisions.warnOfUnreadable(state, end);
    this.#decisions.warnOfOutgrownPlan(state);
    this.#decisions.warnOfOthers(state, this.#parts.clock.elapsed());
    this.#line.reviewSoon();
  }
}
