import type { Clock } from '../clock.ts';
import type { WaitEvent } from '../events.ts';
import type { KeyLog } from '../log.ts';
import { waitAtMost } from '../time-limit.ts';
import type { Taken } from './account/account.ts';
import type { Permit } from './account/format.ts';
import type { Accounts } from './accounts.ts';
import { callEndOf } from './account/call-end.ts';
import type { CallEnd } from './account/call-end.ts';
import type { Call, WriteCall, WriteResult } from './call.ts';
import { CallQueue } from './call-queue.ts';
import { Decisions } from './decisions.ts';
import { PermitSource } from './permit-source.ts';
import type { QuotaState } from './account/quota-state.ts';
import { createRefusal } from './refusal.ts';
import type { GivenReason, Refusal } from './refusal.ts';
import { MAX_WAITING_WRITES, WaitingWrites } from './waiting-writes.ts';

/** The reads of the key. They have no deadline here, since one call serves many reads. */
export interface ReadCalls {
  /** Returns how many calls they want now. */
  readonly wanted: () => number;
  /** Takes the next call; undefined where none is wanted any more. */
  readonly next: () => Call | undefined;
  /** Ends the wait for permits: petql is stopping. */
  readonly refuse: (refusal: Refusal) => void;
  /** Ends every wait by a defect of petql. */
  readonly fail: (error: unknown) => void;
}

interface ThrottleOptions {
  readonly apiKey: string;
  readonly accounts: Accounts;
  readonly clock: Clock;
  /** Gets a line for each decision. */
  readonly log: KeyLog;
  readonly reads: ReadCalls;
  /** Called when waits may have changed. */
  readonly onChange: () => void;
  /** Called when a call is sent. */
  readonly onSend: (event: WaitEvent) => void;
}

/** Calls in flight at a time. */
const MAX_CONCURRENT = 50;
/** Max wait of a response for its settlement. */
const MAX_STORE_WAIT_MS = 100;

/** Sends the upstream calls of one API key within its plan: writes first, in order of arrival, then what the reads want. */
export class Throttle {
  readonly #options: ThrottleOptions;
  readonly #decisions: Decisions;
  /** Created by the first call, since it takes 5 KB: a caller that is served from the cache needs none. */
  #createdQueue: CallQueue | undefined;
  /** Created by the first call too. */
  #source: PermitSource | undefined;
  readonly #writes: WaitingWrites;
  /**
   * Jobs in the queue. A job belongs to no waiter: it makes the call of the first one that still waits. So a
   * waiter that is refused needs none, and a job is only added while there are fewer jobs than waiters.
   */
  #jobs = 0;
  /** Granted and unused: as many as in the queue's reservoir. */
  readonly #permits: Permit[] = [];
  /** Calls that have their permit, up to their settlement. */
  #running = 0;
  /** Settlements that the account has not taken. */
  #settling = 0;
  /** Whether a 429 came while permits were taken. */
  #hasMet429 = false;
  /** Set while petql stops; resolves once nothing is under way. */
  #stopped: PromiseWithResolvers<void> | undefined;

  constructor(options: ThrottleOptions) {
    this.#options = options;
    this.#decisions = new Decisions(options.log);
    this.#writes = new WaitingWrites({
      clock: options.clock,
      decisions: this.#decisions,
      permits: () => this.#permits.length,
      taking: () => this.#source?.taking,
      waitMs: (ahead) => this.#waitMs(ahead),
      refusal: (reason, ahead) => this.refusal(reason, ahead),
      onRefused: () => this.#advance(),
    });
  }

  /** Waits for a permit and then sends. A write that would wait beyond its deadline is refused at once. */
  async write(call: WriteCall): Promise<WriteResult> {
    const refusal = this.#refusalOf(call);
    if (refusal) {
      this.#decisions.logRefusal(refusal, call.id);
      return refusal;
    }

    const result = this.#writes.add(call);
    this.#advance();
    return result;
  }

  /** Takes permits for the reads, after a change of the calls that they want. */
  pull(): void {
    if (this.#stopped && this.#options.reads.wanted() > 0) this.#options.reads.refuse(this.refusal('stopping'));
    this.#advance();
  }

  /** Returns the key's quota as this process saw it last; undefined before the first call. */
  quotaState(): QuotaState | undefined {
    return this.#options.accounts.quotaState(this.#options.apiKey);
  }

  /** Returns the key's quota from the store. */
  readQuotaState(): Promise<QuotaState> {
    return this.#options.accounts.readQuotaState(this.#options.apiKey);
  }

  /** Whether this process knows that the upstream has accepted the key. */
  isProven(): boolean {
    return this.#options.accounts.isProven(this.#options.apiKey);
  }

  /** Whether the key is paused after a 429. */
  isPaused(): boolean {
    return (this.quotaState()?.pausedForMs ?? 0) > 0;
  }

  /** Whether a 401 or 403 may be a ban now: the last response was a 429, or such a rejection after one. */
  isAfter429(): boolean {
    return (this.quotaState()?.incidents ?? 0) > 0;
  }

  /** Whether calls wait, are in flight, or are not settled. */
  isBusy(): boolean {
    return this.#isTaking() || this.#running + this.#settling + this.#permits.length + this.#waiting() > 0;
  }

  /** Returns how many writes wait. */
  waitingWrites(): number {
    return this.#writes.size;
  }

  /** Whether the account may have changed since this process saw it: nothing is refused by it before permits are taken again. */
  hasOldView(): boolean {
    // While permits are taken, the account may count some that are not here yet.
    return this.#isTaking() || this.#options.accounts.isViewOld(this.#options.apiKey);
  }

  /** Returns how many calls get a permit before a read with `ahead` other reads before it; below 0 if there is one for it. */
  callsBefore(ahead: number): number {
    return ahead + this.#writes.size - this.#permits.length;
  }

  /** Returns the minimum wait of a read with `ahead` others before it, and its refusal if it cannot wait that long. */
  waitOf(ahead: number): { readonly waitMs: number; readonly refusal: Refusal } {
    const before = this.callsBefore(ahead);
    return {
      waitMs: before < 0 ? 0 : this.#waitMs(before),
      refusal: this.refusal('plan', Math.max(0, before)),
    };
  }

  /** Whether a read with `ahead` others before it waits for a call in flight: too many are, or one is the probe after a pause. */
  waitsForCalls(ahead: number): boolean {
    const before = this.callsBefore(ahead);
    if (before < 0) return false;
    if (this.#running + ahead + this.#writes.size >= MAX_CONCURRENT) return true;
    // While permits are taken, the probe may be the call of this read.
    return !this.#isTaking() && this.#options.accounts.isProbing(this.#options.apiKey);
  }

  /** Returns the refusal of a call with `ahead` others before it. */
  refusal(reason: GivenReason, ahead = 0): Refusal {
    const { accounts, apiKey, clock } = this.#options;
    return createRefusal(reason, accounts.waitOf(apiKey, ahead), this.quotaState(), clock.now());
  }

  /** Refuses waiting and new calls, and resolves once the calls in flight are settled. */
  close(): Promise<void> {
    this.#stopped ??= Promise.withResolvers();
    this.#source?.close();
    this.#writes.refuseAll(this.refusal('stopping'));
    this.pull();
    return this.#stopped.promise;
  }

  get #queue(): CallQueue {
    return (this.#createdQueue ??= new CallQueue(MAX_CONCURRENT));
  }

  /** Returns why a write cannot wait at all. */
  #refusalOf({ signal }: WriteCall): Refusal | undefined {
    if (this.#stopped) return this.refusal('stopping');
    if (signal?.aborted) return this.refusal('aborted');
    return this.#writes.size < MAX_WAITING_WRITES ? undefined : this.refusal('crowded', MAX_WAITING_WRITES);
  }

  /** Refuses writes whose wait would pass their deadline, and takes permits for the calls that wait. */
  #advance(): void {
    // 1. Nobody waits in vain, and no permit stays without a waiter.
    if (!this.hasOldView()) this.#writes.refuseHopeless();
    const waiting = this.#waiting();
    this.#giveBack(this.#permits.length - waiting);

    // 2. There is a job for each waiter.
    for (; this.#jobs < waiting; this.#jobs += 1) this.#queue.schedule(() => this.#run());

    // 3. petql takes the permits that it uses now; other replicas may need the rest.
    const missing = Math.min(waiting, MAX_CONCURRENT - this.#running) - this.#permits.length;
    if (missing <= 0 || this.#isTaking()) return this.#resolveStopped();

    this.#hasMet429 = false;
    this.#source ??= this.#createSource();
    this.#source.take(missing);
  }

  #createSource(): PermitSource {
    return new PermitSource({
      clock: this.#options.clock,
      take: (wanted) => this.#take(wanted),
      onTaken: (permits) => this.#receivePermits(permits),
      onFailure: (error) => this.#failAll(error),
      onOpen: () => {
        this.#options.onChange();
        this.#advance();
      },
    });
  }

  /** Refunds permits that nobody uses. */
  #giveBack(count: number): void {
    if (count <= 0) return;

    const unused = this.#permits.splice(-count);
    this.#queue.addPermits(-unused.length);
    for (const permit of unused) void this.#settle(permit, { kind: 'unused' });
  }

  async #take(wanted: number): Promise<Taken> {
    const taken = await this.#options.accounts.take(this.#options.apiKey, wanted);
    this.#decisions.logTaken(wanted, taken);
    return taken;
  }

  #receivePermits(permits: readonly Permit[]): void {
    this.#permits.push(...permits);
    this.#queue.addPermits(permits.length);
    // A permit that was granted before a 429 is not used after it.
    if (this.#hasMet429) this.#giveBack(this.#permits.length);
  }

  /** A job starts: the queue has taken one permit from its reservoir. */
  async #run(): Promise<void> {
    this.#jobs -= 1;
    const permit = this.#permits.shift();
    if (!permit) {
      // The permit was given back meanwhile. Adds the unit that this job took from the reservoir.
      this.#queue.addPermits(1);
      return this.#advance();
    }

    this.#running += 1;
    await this.#use(permit, this.#writes.takeFirst() ?? this.#options.reads.next());
    this.#running -= 1;
    this.#advance();
  }

  /** Makes the call with the permit, or refunds it if there is none. Never rejects. */
  async #use(permit: Permit, call: Call | undefined): Promise<void> {
    const { clock, onSend } = this.#options;
    const sentAtMs = clock.elapsed();
    try {
      const sending = call?.send();
      if (!call || !sending) {
        void this.#settle(permit, { kind: 'unused' });
        return;
      }

      const waitedMs = sentAtMs - call.waitingSinceMs;
      onSend({ kind: call.kind, waitedMs });
      this.#decisions.logCall(call, waitedMs);

      const answer = await sending;
      const times = { tookMs: clock.elapsed() - sentAtMs, nowMs: clock.now() };
      this.#decisions.logFailure(call, answer, times.tookMs);

      // The client's next operation is counted after this call.
      await waitAtMost(this.#settle(permit, callEndOf(permit, answer, times)), MAX_STORE_WAIT_MS);
      call.receive(answer);
    } catch (error) {
      void this.#settle(permit, { kind: 'lost' });
      call?.fail(error);
    }
  }

  /** Settles a permit in the account, which may free others. */
  async #settle(permit: Permit, end: CallEnd): Promise<void> {
    const { accounts, apiKey, onChange } = this.#options;
    if (end.kind === 'rate-limited') {
      this.#hasMet429 = true;
      this.#giveBack(this.#permits.length);
    }

    this.#settling += 1;
    this.#source?.reopen();
    await accounts.settle(apiKey, permit, end);
    this.#settling -= 1;

    this.#decisions.warnOfPause(this.quotaState(), end);
    onChange();
    this.#advance();
  }

  #failAll(error: unknown): void {
    this.#writes.failAll(error);
    this.#options.reads.fail(error);
  }

  #resolveStopped(): void {
    if (this.#stopped && !this.isBusy()) this.#stopped.resolve();
  }

  /** Whether the account is being read. */
  #isTaking(): boolean {
    return this.#source?.taking !== undefined;
  }

  /** Returns how many calls wait. */
  #waiting(): number {
    return this.#writes.size + this.#options.reads.wanted();
  }

  #waitMs(ahead: number): number {
    return this.#options.accounts.waitOf(this.#options.apiKey, ahead).waitMs;
  }
}
