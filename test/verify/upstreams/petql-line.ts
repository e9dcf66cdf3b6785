import { silentLog } from '../../../src/common/log.ts';
import type { Log } from '../../../src/common/log.ts';
import type { CallerRequest } from '../../../src/common/caller-request.ts';
import type { AssumedPlan } from '../../../src/common/plan.ts';
import type { Clock } from '../../../src/common/clock.ts';
import { steadyTime } from '../../../src/common/clock.ts';
import { ClosedApi } from '../../../src/closed/closed-api.ts';
import { ClosedOperations } from '../../../src/closed/closed-operations.ts';
import { RejectedKeys } from '../../../src/closed/rejected-keys.ts';
import { ServerKeyState } from '../../../src/closed/server-key-state.ts';
import { CallLine } from '../../../src/line/call-line.ts';
import type { ServeStale } from '../../../src/line/admission.ts';
import type { LineAnswer, LineCall, RequestClaim, CallSource, WaitingWrite } from '../../../src/line/line-call.ts';
import type { Refusal } from '../../../src/line/refusal.ts';
import { LocalAccounts } from '../../../src/quota/account-store.ts';
import type { Account } from '../../../src/quota/account/format.ts';
import { KeyQuota } from '../../../src/quota/key-quota.ts';
import { createMemoryStore } from '../../../src/store/memory-store.ts';
import { ALONE } from '../../../src/store/replicas.ts';

/** The response to a call. */
interface Answered {
  readonly status: number;
}

/** When petql says that it may be tried again. */
interface Refused {
  readonly reason: Refusal['reason'];
  readonly retryAfterMs: number;
}

/** How a wait ended. */
export type Ended = Answered | Refused | { readonly staleBy: ServeStale['reason'] };

/** Who waits for a call. */
export interface Waiter {
  readonly send: Send;
  readonly end: (ended: Ended) => void;
  /** Takes an error that concerns all calls of the key. */
  readonly fail: (error: unknown) => void;
}

/** What a client wants. */
export interface Wanted {
  readonly kind: 'read' | 'write';
  readonly waitMs: number;
  /** Default: visitors are not told apart. */
  readonly visitor?: string | undefined;
  /** Whether cached data would do. Default false. */
  readonly isRefresh?: boolean;
  /** Default false. */
  readonly isBackground?: boolean;
}

export type Send = () => Promise<LineAnswer>;

const TIMEOUT_MS = 5_000;
const KEY = 'key';

/** The line of one API key in a process, as a gateway builds it, in front of an upstream. */
export class PetqlLine {
  readonly #line: CallLine;
  readonly #accounts: LocalAccounts;
  readonly #reads: Reads;
  readonly #clock: Clock;
  readonly #send: Send;

  /** @param send sends the writes of `write`, and what petql asks for itself. */
  constructor(plan: AssumedPlan, clock: Clock, send: Send, log: Log = silentLog) {
    const nameOf = (text: string) => text;
    const nowMs = steadyTime(clock);
    const rules = { plan, startedAtMs: nowMs(), leaseMs: 2 * TIMEOUT_MS + 60_000, probeMs: 2 * TIMEOUT_MS };
    const closedOperations = new ClosedOperations(clock, log);
    this.#accounts = new LocalAccounts(createMemoryStore(nowMs), rules);
    const parts = {
      accounts: this.#accounts,
      replicas: ALONE,
      offline: new Set<never>(),
      rejectedKeys: new RejectedKeys(clock, nameOf),
      serverKey: new ServerKeyState(undefined, log),
      closedApi: new ClosedApi(clock, ALONE, closedOperations),
      closedOperations,
      nameOf,
      clock,
      log,
      events: undefined,
    };
    this.#clock = clock;
    this.#send = send;
    this.#reads = new Reads(clock, send);
    this.#line = new CallLine(new KeyQuota(KEY, parts), parts, log, [this.#reads]);
  }

  /** The account of the key; undefined before the first call. */
  get account(): Account | undefined {
    return this.#accounts.find(KEY);
  }

  /** Makes a write, and makes it again after a 429, as creates are made. */
  write(waitMs: number): Promise<Answered | Refused> {
    return new Promise((resolve, reject) => {
      const end = (ended: Ended) => {
        if ('status' in ended && ended.status === 429) this.#line.write(write);
        else if (!('staleBy' in ended)) resolve(ended);
      };
      const write = this.#callOf({ kind: 'write', waitMs }, { send: this.#send, end, fail: reject });
      this.#line.write(write);
    });
  }

  /** Lets a call stand in the line. Returns the function that ends its wait. */
  want(wanted: Wanted, waiter: Waiter): () => void {
    const call = this.#callOf(wanted, waiter);
    if (call.kind === 'write') {
      this.#line.write(call);
      return () => this.#line.abort(call);
    }
    this.#reads.add(call);
    this.#line.reviewSoon();
    return () => {
      this.#reads.delete(call);
      this.#line.reviewSoon();
    };
  }

  /** Refuses waiting and new calls, and resolves once the calls in flight are settled. */
  stop(): Promise<void> {
    return this.#line.close();
  }

  #callOf(wanted: Wanted, waiter: Waiter): CallOfOne {
    return new CallOfOne(wanted, waiter, this.#clock.elapsed(), this.#reads);
  }
}

/** A call that one client waits for: it is its own claim. */
class CallOfOne implements WaitingWrite {
  readonly kind: Wanted['kind'];
  readonly name: string;
  readonly operation: string;
  readonly isList: boolean;
  readonly isRetry = false;
  readonly isRefresh: boolean;
  readonly shownInput = undefined;
  readonly claims = [this];
  readonly request: CallerRequest;
  readonly waitingSinceMs: number;
  readonly #waiter: Waiter;
  readonly #reads: Set<LineCall>;

  constructor(wanted: Wanted, waiter: Waiter, nowMs: number, reads: Set<LineCall>) {
    const { kind, isRefresh = false } = wanted;
    this.kind = kind;
    this.isList = kind === 'read';
    this.name = this.isList ? 'listPets' : 'createPet';
    this.operation = this.isList ? 'all' : 'createPet';
    this.isRefresh = isRefresh;
    this.request = requestOf(wanted, nowMs);
    this.waitingSinceMs = nowMs;
    this.#waiter = waiter;
    this.#reads = reads;
  }

  send(): Promise<LineAnswer> {
    this.#reads.delete(this);
    return this.#waiter.send();
  }

  receive({ status = 0 }: LineAnswer): void {
    this.#waiter.end({ status });
  }

  refuse(_claim: RequestClaim, { error, reason }: Refusal): void {
    this.#reads.delete(this);
    this.#waiter.end({ reason, retryAfterMs: Number(error().details['retryAfterMs'] ?? 0) });
  }

  serveStale(_claim: RequestClaim, reason: ServeStale['reason']): void {
    this.#reads.delete(this);
    this.#waiter.end({ staleBy: reason });
  }

  fail(error: unknown): void {
    this.#reads.delete(this);
    this.#waiter.fail(error);
  }
}

/** The reads that clients wait for, and the list that petql asks for itself to find out whether the upstream works. */
class Reads extends Set<LineCall> implements CallSource {
  readonly #clock: Clock;
  readonly #send: Send;
  #asked: LineCall | undefined;

  constructor(clock: Clock, send: Send) {
    super();
    this.#clock = clock;
    this.#send = send;
  }

  askForList(): void {
    if (this.#asked && this.has(this.#asked)) return;
    const nobody = { send: this.#send, end() {}, fail() {} };
    this.#asked = new CallOfOne({ kind: 'read', waitMs: TIMEOUT_MS }, nobody, this.#clock.elapsed(), this);
    this.add(this.#asked);
  }

  calls(): readonly LineCall[] {
    return [...this];
  }

  prepare(): void {}

  discardPlan(): void {}

  recordRejection(): void {}

  fail(error: unknown): void {
    for (const call of this) call.fail(error);
  }
}

function requestOf({ isBackground = false, visitor, waitMs }: Wanted, nowMs: number): CallerRequest {
  return {
    id: '',
    operation: undefined,
    trace: undefined,
    freshness: { maxAgeMs: -1, maxStaleMs: 0, coalesceWithinMs: 0, mayCall: true, mayServeStaleToSaveCalls: false },
    deadlineMs: nowMs + waitMs,
    signal: () => undefined,
    visitor,
    isBackground,
    isDryRun: false,
    upstreamCalls: 0,
    promisedAtMs: -Infinity,
  };
}
