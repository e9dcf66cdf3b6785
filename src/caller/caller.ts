import { keyLog } from '../log.ts';
import type { Freshness } from '../reads/cache/freshness.ts';
import type { ReadKey } from '../pets/read-key.ts';
import type { RequestTerms } from '../reads/read-request.ts';
import type { QuotaState } from '../throttle/account/quota-state.ts';
import type { Wait } from '../throttle/account/wait.ts';
import type { Visitor } from '../throttle/visitor-calls.ts';
import { ConsumerCounts } from './consumers.ts';
import type { Consumers, OperationUse } from './consumers.ts';
import { DayWarning } from './day-warning.ts';
import { estimateCalls } from './cost-estimate.ts';
import { createPetAccess } from './pet-access.ts';
import type { PetAccess, SharedParts } from './pet-access.ts';
import { quotaViewOf } from './quota.ts';
import type { QuotaView } from './quota.ts';
import { RequestPets } from './request-pets.ts';
import type { SavedCalls } from './usage.ts';

/** A caller as operators see it: never by its key. */
export interface CallerView {
  /** The hash of its key. */
  readonly name: string;
  readonly quota: QuotaView;
  /** Calls made by this process since it created the caller, and reads that cost no call. */
  readonly made: number;
  readonly saved: number;
  /** Whether the pet API rejected the key, so that petql makes no call with it for now. */
  readonly isRejected: boolean;
  /** Who has used its quota by this process. */
  readonly consumers: Consumers;
}

/** What petql keeps for one API key. Nothing of it is shared with another key. */
export class Caller {
  readonly apiKey: string;
  readonly #shared: SharedParts;
  /** Made for the first read or write: anybody can make up API keys, and look at their quota. */
  #access: PetAccess | undefined;
  /** Operations under way. */
  #operations = 0;
  #savedCalls = 0;
  readonly #consumers: ConsumerCounts;
  #hasUsedQuota = false;
  /** Undefined for the demo keys of the sandbox. */
  readonly #dayWarning: DayWarning | undefined;
  #isClosing = false;

  constructor(apiKey: string, shared: SharedParts) {
    this.apiKey = apiKey;
    this.#shared = shared;
    this.#consumers = new ConsumerCounts(shared.consumerRows);
    this.#dayWarning = shared.isDemo ? undefined : new DayWarning(keyLog(shared.log, () => shared.nameOf(apiKey)));
  }

  /** Begins an operation; its `end` follows. */
  begin(): void {
    this.#operations += 1;
  }

  end(): void {
    this.#operations -= 1;
  }

  /** Whether an operation, a call or a write is under way: another caller of the key would not see what it writes. */
  get isInUse(): boolean {
    if (this.#operations > 0) return true;
    return this.#access !== undefined && (this.#access.line.isBusy() || this.#access.writes.isBusy);
  }

  /** Returns the reads and writes of one request. */
  pets(request: RequestTerms): RequestPets {
    const { reads, writes } = this.#useAccess();
    const { clock, spans } = this.#shared;
    return new RequestPets({ reads, writes, clock, spans, request });
  }

  /** Returns the quota as this process knows it, or the visitor's share of it; undefined before the first call. */
  latestQuota(visitor?: Visitor): QuotaView | undefined {
    const quotaState = this.#shared.accounts.quotaState(this.apiKey);
    return quotaState && this.#viewOf(quotaState, visitor);
  }

  /** Returns the quota with what other replicas have used. */
  async readQuota(visitor: Visitor): Promise<QuotaView> {
    return this.#viewOf(await this.#shared.accounts.readQuotaState(this.apiKey), visitor);
  }

  /** Returns the maximum of calls that these reads can cost now, retries aside. */
  maxCalls(keys: readonly ReadKey[], { maxAgeMs, mayCall }: Freshness): number {
    if (!mayCall) return 0;
    const { clock, getRoute } = this.#shared;
    return estimateCalls(keys, clock.elapsed() - maxAgeMs, { cache: this.#useAccess().cache, getRoute });
  }

  /** Reads the account. Returns the expected wait of the last of these calls of a request, behind those that wait already. */
  async waitFor(calls: number, terms: RequestTerms): Promise<Wait> {
    const { line } = this.#useAccess();
    await line.readQuotaState();
    return line.expectedWait(calls, terms);
  }

  /** Counts what an operation has saved. */
  recordSavings(calls: SavedCalls): void {
    for (const [reason, count] of Object.entries(calls)) {
      this.#savedCalls += count;
      this.#shared.events?.saved({ reason, calls: count });
    }
  }

  /** Whether it knows what must outlive an idle hour: the calls of visitors, and who used the quota today. */
  get isKeptForADay(): boolean {
    return this.#hasUsedQuota || this.#access?.visitors.isEmpty === false;
  }

  /** Counts what an operation has used for its name and its client. */
  recordUse(use: OperationUse): void {
    this.#hasUsedQuota ||= use.callsMade > 0;
    const { accounts, clock, replicas } = this.#shared;
    const nowMs = clock.now();
    this.#consumers.record(use, nowMs);
    if (use.callsMade === 0) return;

    const day = accounts.quotaState(this.apiKey)?.day;
    if (day) this.#dayWarning?.check(day, () => this.#consumers.view(nowMs), { nowMs, replicas: replicas() });
  }

  /** Returns what operators see; undefined before the first call. */
  view(): CallerView | undefined {
    const quota = this.latestQuota();
    if (!quota) return undefined;

    const { apiKey } = this;
    const consumers = this.#consumers;
    const { clock, nameOf, rejectedKeys } = this.#shared;
    // Both hash the key, and the metrics read them of a few callers only.
    return {
      get name() {
        return nameOf(apiKey);
      },
      quota,
      made: this.#access?.line.madeCalls ?? 0,
      saved: this.#savedCalls,
      get isRejected() {
        return rejectedKeys.error(apiKey) !== undefined;
      },
      get consumers() {
        return consumers.view(clock.now());
      },
    };
  }

  /** Frees what it holds, after its eviction. */
  free(): void {
    this.#consumers.free();
    this.#access?.sharedLists?.free();
    this.#access?.cache.clear();
  }

  /** Refuses waiting and new calls, and resolves once the calls in flight are settled and their outcomes stored. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#access) await closeAccess(this.#access);
  }

  #useAccess(): PetAccess {
    if (this.#access) return this.#access;
    this.#access = createPetAccess(this.apiKey, this.#shared);
    if (this.#isClosing) void closeAccess(this.#access);
    return this.#access;
  }

  #viewOf(quotaState: QuotaState, visitor: Visitor): QuotaView {
    const shown = visitor === undefined ? quotaState : this.#useAccess().visitors.quotaOf(visitor, quotaState);
    return quotaViewOf(shown, this.#access?.line, this.#shared.clock.now());
  }
}

async function closeAccess({ queue, line, writes }: PetAccess): Promise<void> {
  queue.close();
  await Promise.all([line.close(), writes.close()]);
}
