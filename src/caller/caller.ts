import type { CallerRequest, Freshness } from '../common/caller-request.ts';
import type { OperationEvent } from '../common/events.ts';
import { keyLog } from '../common/log.ts';
import type { GetRoute } from '../pets/get-route.ts';
import type { PetApi } from '../pets/pet-api.ts';
import { PetCache } from '../reads/cache/pet-cache.ts';
import type { SharedLists } from '../reads/cache/shared-lists.ts';
import type { SnapshotMemory } from '../reads/cache/snapshot-memory.ts';
import { FailedCalls } from '../reads/failed-calls.ts';
import { PetReads } from '../reads/pet-reads.ts';
import type { ReadKey } from '../pets/read-key.ts';
import type { QuotaState } from '../quota/account/quota-state.ts';
import type { Wait } from '../quota/account/wait.ts';
import { CallLine } from '../line/call-line.ts';
import type { CallSource } from '../line/line-call.ts';
import type { KeyAccount } from '../quota/key-account.ts';
import { KeyQuota } from '../quota/key-quota.ts';
import type { QuotaParts } from '../quota/key-quota.ts';
import type { Visitor } from '../quota/visitors.ts';
import type { Spans } from '../common/tracing.ts';
import type { IdempotencySettings } from '../writes/idempotency.ts';
import { Writes } from '../writes/writes.ts';
import { ConsumerCounts } from './consumers.ts';
import type { ConsumerRows } from './consumers.ts';
import { DayWarning } from './day-warning.ts';
import type { KeyReport } from './key-report.ts';
import { quotaView } from './quota-view.ts';
import type { QuotaView } from './quota.ts';

/** What all callers of a gateway share. */
export interface SharedParts extends QuotaParts {
  readonly petApi: PetApi;
  readonly getRoute: GetRoute;
  readonly memory: SnapshotMemory;
  readonly consumerRows: ConsumerRows;
  /** Shares lists between replicas; undefined without Redis. */
  readonly sharedLists: SharedLists | undefined;
  readonly idempotency: IdempotencySettings;
  /** After how long an unused caller is forgotten, in milliseconds, and 15 minutes at least. The quota that it used is kept. */
  readonly idleMs: number;
  readonly spans: Spans;
}

/** What it takes to read and write pets with one API key. */
interface PetAccess {
  readonly line: CallLine;
  readonly reads: PetReads;
  readonly writes: Writes;
}

/** What petql keeps for one API key. Nothing of it is shared with another key. */
export class Caller {
  readonly apiKey: string;
  readonly #shared: SharedParts;
  readonly #quota: KeyQuota;
  /** Made for the first read or write: anybody can make up API keys, and look at their quota. */
  #access: PetAccess | undefined;
  /** Operations under way. */
  #operations = 0;
  #savedCalls = 0;
  readonly #consumers: ConsumerCounts;
  #hasUsedQuota = false;
  /** Undefined before the first read or write. */
  #dayWarning: DayWarning | undefined;
  /** The last view: a state is replaced with each change of the account, and each millisecond. */
  #viewed: { readonly state: QuotaState; readonly view: QuotaView } | undefined;
  #isClosing = false;

  constructor(apiKey: string, shared: SharedParts) {
    this.apiKey = apiKey;
    this.#shared = shared;
    this.#quota = new KeyQuota(apiKey, shared);
    this.#consumers = new ConsumerCounts(shared.consumerRows);
  }

  /** Begins an operation; its `end` follows. */
  begin(): void {
    this.#operations += 1;
  }

  end(): void {
    this.#operations -= 1;
  }

  /** The key's account. */
  get account(): KeyAccount {
    return this.#quota.account;
  }

  /** Whether an operation, a call or a write is under way: another caller of the key would not see what it writes. */
  get isInUse(): boolean {
    if (this.#operations > 0) return true;
    return this.#access !== undefined && (this.#access.line.isBusy() || this.#access.writes.isBusy);
  }

  get reads(): PetReads {
    return this.#useAccess().reads;
  }

  get writes(): Writes {
    return this.#useAccess().writes;
  }

  /** Returns the quota as this process knows it, or the visitor's share of it; undefined before the first call. */
  quota(visitor?: Visitor): QuotaView | undefined {
    const { state } = this.#quota.account;
    if (!state) return undefined;
    if (visitor !== undefined) return this.#viewOf(state, visitor);

    if (this.#viewed?.state !== state) this.#viewed = { state, view: this.#viewOf(state, visitor) };
    return this.#viewed.view;
  }

  /** Returns the quota with what other replicas have used. */
  async readQuota(visitor: Visitor): Promise<QuotaView> {
    return this.#viewOf(await this.#quota.account.read(), visitor);
  }

  /** Calls that wait in this process. */
  get queued(): number {
    return this.#access?.line.length ?? 0;
  }

  /** Returns the maximum of calls that these reads can cost now, retries aside. */
  maxCalls(keys: readonly ReadKey[], freshness: Freshness): number {
    return this.#useAccess().reads.maxCalls(keys, freshness);
  }

  /** Reads the account. Returns the expected wait of the last of these calls of a request, behind those that wait already. */
  async waitFor(calls: number, request: CallerRequest): Promise<Wait> {
    await this.#quota.account.read();
    return this.#useAccess().line.expectedWait(calls, request);
  }

  /** Whether it knows what must outlive an idle hour: the calls of visitors, and who used the quota today. */
  get isKeptForADay(): boolean {
    return this.#hasUsedQuota || !this.#quota.visitors.isEmpty;
  }

  /** Counts an operation that has ended: what it saved, and what it used for its name and its client. */
  record(operation: OperationEvent): void {
    const { clock, replicas } = this.#shared;
    const nowMs = clock.now();
    this.#savedCalls += operation.savedCalls;
    this.#consumers.record(operation, nowMs);
    if (operation.upstreamCalls === 0) return;

    this.#hasUsedQuota = true;
    const { day } = this.#quota.account.state ?? {};
    if (day) this.#dayWarning?.check(day, () => this.#consumers.view(nowMs), { nowMs, replicas: replicas.count });
  }

  /** Returns what operators see of the key. */
  report(quota: QuotaView): KeyReport {
    return {
      key: this.#quota.name,
      ...quota,
      isRejected: this.#quota.rejection !== undefined,
      queued: this.queued,
      callsMade: this.#access?.line.madeCalls ?? 0,
      callsSaved: this.#savedCalls,
      consumers: this.#consumers.view(this.#shared.clock.now()),
    };
  }

  /** Frees what it holds, after its eviction. */
  free(): void {
    this.#consumers.free();
    this.#access?.reads.free();
    this.#quota.closed.free();
  }

  /** Refuses waiting and new calls, and resolves once the calls in flight are settled and their outcomes stored. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#access) await closeAccess(this.#access);
  }

  #useAccess(): PetAccess {
    if (this.#access) return this.#access;
    this.#access = this.#createAccess();
    if (this.#isClosing) void closeAccess(this.#access);
    return this.#access;
  }

  #createAccess(): PetAccess {
    const { clock, closedOperations, idempotency, memory, sharedLists } = this.#shared;
    const log = keyLog(this.#shared.log, () => this.#quota.name);
    this.#dayWarning = new DayWarning(log);
    const readers: CallSource[] = [];
    const line = new CallLine(this.#quota, this.#shared, log, readers);
    const cache = new PetCache(memory, clock, this.#quota.closed);
    const failedCalls = new FailedCalls({ clock, closedOperations, quota: this.#quota, line });
    const parts = { ...this.#shared, quota: this.#quota, log, line, cache, failedCalls };
    const reads = new PetReads(parts, sharedLists);
    readers.push(reads.line);
    const writes = new Writes({ ...parts, reads }, idempotency);
    return { line, reads, writes };
  }

  #viewOf(state: QuotaState, visitor: Visitor): QuotaView {
    const shown = visitor === undefined ? state : this.#quota.visitors.quotaOf(visitor, state);
    return quotaView(shown, this.#shared.clock.now());
  }
}

async function closeAccess({ line, reads, writes }: PetAccess): Promise<void> {
  reads.close();
  await Promise.all([line.close(), writes.close()]);
}
