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
import type { LineAnswer, LineCall, RequestClaim, CallSource, WaitingWrite } from '../../../src/line/line-call.ts';
import type { Refusal } from '../../../src/line/refusal.ts';
import { LocalAccounts } from '../../../src/quota/account-store.ts';
import { KeyQuota } from '../../../src/quota/key-quota.ts';
import { createMemoryStore } from '../../../src/store/memory-store.ts';
import { ALONE } from '../../../src/store/replicas.ts';

/** How a wanted call ended: the status of its response, or when it may be tried again, as petql said. */
export type Ended = { readonly status: number } | { readonly retryAfterMs: number };

export type Send = () => Promise<LineAnswer>;

const TIMEOUT_MS = 5_000;
const KEY = 'key';

/** The line of one API key in a process, as a gateway builds it, in front of an upstream. */
export class PetqlLine {
  readonly #line: CallLine;
  readonly #clock: Clock;
  readonly #send: Send;

  constructor(plan: AssumedPlan, clock: Clock, send: Send, log: Log = silentLog) {
    const nameOf = (text: string) => text;
    const nowMs = steadyTime(clock);
    const rules = { plan, startedAtMs: nowMs(), leaseMs: 2 * TIMEOUT_MS + 60_000, probeMs: 2 * TIMEOUT_MS };
    const closedOperations = new ClosedOperations(clock, log);
    const parts = {
      accounts: new LocalAccounts(createMemoryStore(nowMs), rules),
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
    this.#line = new CallLine(new KeyQuota(KEY, parts), parts, log, [new AskedLists(clock, send)]);
  }

  /** Makes a call, and makes it again after a 429, as creates are made. */
  async call(waitMs: number): Promise<Ended> {
    const waitingSinceMs = this.#clock.elapsed();
    const request = requestUntil(waitingSinceMs + waitMs);
    for (;;) {
      const write = new WantedWrite(request, waitingSinceMs, this.#send);
      this.#line.write(write);
      const ended = await write.ended.promise;
      if (!('status' in ended) || ended.status !== 429) return ended;
    }
  }

  stop(): Promise<void> {
    return this.#line.close();
  }
}

class WantedWrite implements WaitingWrite {
  readonly kind = 'write';
  readonly name = 'createPet';
  readonly operation = 'createPet';
  readonly isList = false;
  readonly isRetry = false;
  readonly isRefresh = false;
  readonly shownInput = undefined;
  readonly claims = [this];
  readonly request: CallerRequest;
  readonly waitingSinceMs: number;
  readonly send: Send;
  readonly ended = Promise.withResolvers<Ended>();

  constructor(request: CallerRequest, waitingSinceMs: number, send: Send) {
    this.request = request;
    this.waitingSinceMs = waitingSinceMs;
    this.send = send;
  }

  receive({ status = 0 }: LineAnswer): void {
    this.ended.resolve({ status });
  }

  refuse(_claim: RequestClaim, refusal: Refusal): void {
    this.ended.resolve({ retryAfterMs: Number(refusal.error().details['retryAfterMs'] ?? 0) });
  }

  serveStale(): void {}

  fail(error: unknown): void {
    this.ended.reject(error);
  }
}

/** The lists that petql asks for itself, to find out whether the upstream works. No client reads any. */
class AskedLists implements CallSource {
  readonly #clock: Clock;
  readonly #send: Send;
  #wanted: LineCall | undefined;

  constructor(clock: Clock, send: Send) {
    this.#clock = clock;
    this.#send = send;
  }

  askForList(): void {
    const nowMs = this.#clock.elapsed();
    const claim = { request: requestUntil(nowMs + TIMEOUT_MS), isRefresh: false };
    const end = () => void (this.#wanted = undefined);
    this.#wanted ??= {
      kind: 'read',
      name: 'listPets',
      operation: 'all',
      isList: true,
      isRetry: false,
      shownInput: undefined,
      waitingSinceMs: nowMs,
      claims: [claim],
      send: () => {
        end();
        return this.#send();
      },
      refuse: end,
      serveStale: end,
      receive() {},
      fail: end,
    };
  }

  calls(): readonly LineCall[] {
    return this.#wanted ? [this.#wanted] : [];
  }

  prepare(): void {}

  discardPlan(): void {}

  recordRejection(): void {}

  fail(): void {
    this.#wanted = undefined;
  }
}

function requestUntil(deadlineMs: number): CallerRequest {
  return {
    id: '',
    operation: undefined,
    trace: undefined,
    freshness: { maxAgeMs: -1, maxStaleMs: 0, coalesceWithinMs: 0, mayCall: true, mayServeStaleToSaveCalls: false },
    deadlineMs,
    signal: () => undefined,
    visitor: undefined,
    isBackground: false,
    isDryRun: false,
    upstreamCalls: 0,
    promisedAtMs: -Infinity,
  };
}
