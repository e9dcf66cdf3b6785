import type { Clock } from '../clock.ts';
import type { Events } from '../events.ts';
import { keyLog } from '../log.ts';
import type { Log } from '../log.ts';
import type { Freshness } from '../reads/freshness.ts';
import { FailedCalls } from '../reads/failed-calls.ts';
import type { GetRoute } from '../reads/get-route.ts';
import { PetCache } from '../reads/pet-cache.ts';
import { createPetReads } from '../reads/pet-reads.ts';
import { isList } from '../reads/read-key.ts';
import type { RequestTerms } from '../reads/read-request.ts';
import type { ReadKey } from '../reads/read-key.ts';
import { ReadQueue } from '../reads/read-queue.ts';
import { createRefreshBudget } from '../reads/refresh-budget.ts';
import type { RetryBudget } from '../reads/retry-budget.ts';
import type { SharedLists } from '../reads/shared-lists.ts';
import type { SnapshotMemory } from '../reads/snapshot-memory.ts';
import type { NameOf } from '../store/names.ts';
import type { Accounts } from '../throttle/accounts.ts';
import { Throttle } from '../throttle/throttle.ts';
import type { QuotaState } from '../throttle/account/quota-state.ts';
import { VisitorShares } from '../throttle/visitor-shares.ts';
import type { Visitor } from '../throttle/visitor-shares.ts';
import type { Spans } from '../tracing.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import type { RejectedKeys } from './rejected-keys.ts';
import { createWrites } from '../writes/create-pet.ts';
import type { SubmitRecords } from '../writes/idempotency.ts';
import { quotaViewOf } from './quota.ts';
import type { QuotaView } from './quota.ts';
import { estimateCalls } from './cost-estimate.ts';
import { createRequestPets } from './request-pets.ts';
import type { SavedCalls } from './usage.ts';

export interface CallersOptions {
  readonly petApi: PetApi;
  readonly accounts: Accounts;
  readonly clock: Clock;
  readonly log: Log;
  /** After how long an unused caller is forgotten, in milliseconds, and 15 minutes at least. The quota that it used is kept. */
  readonly idleMs: number;
  /** How many processes share a plan. */
  readonly replicas: () => number;
  /** Shares lists between them; undefined without Redis. */
  readonly sharedLists: SharedLists | undefined;
  /** Where submits with an idempotency key are stored. */
  readonly submits: SubmitRecords;
  /** Names callers where they are shown and stored. */
  readonly nameOf: NameOf;
  readonly events: Events | undefined;
  readonly spans: Spans;
}

/** What all callers share. */
interface SharedParts {
  readonly getRoute: GetRoute;
  readonly retryBudget: RetryBudget;
  readonly memory: SnapshotMemory;
  readonly rejectedKeys: RejectedKeys;
}

export type Caller = ReturnType<typeof createCaller>;
/** How long the quota makes a call wait. */
export interface ExpectedWait {
  readonly waitMs: number;
  /** The window that makes it wait longest; undefined where it does not wait, or not for the plan. */
  readonly window: 'DAY' | 'MINUTE' | undefined;
}

/** A caller as operators see it: never by its key. */
export type CallerView = NonNullable<ReturnType<Caller['view']>>;

/** What petql keeps for one API key. Nothing of it is shared with another key. */
export function createCaller(
  apiKey: string,
  { memory, rejectedKeys, ...shared }: SharedParts,
  options: CallersOptions,
) {
  const { petApi, clock, events, spans, nameOf } = options;
  const log = keyLog(options.log, () => nameOf(apiKey));
  let savedCalls = 0;
  /** Operations under way. */
  let operations = 0;
  const throttle = new Throttle({
    apiKey,
    ...options,
    log,
    reads: {
      wanted: () => queue.wanted(),
      next: () => queue.next(),
      refuse: (refused) => queue.refuse(refused),
      fail: (error) => queue.fail(error),
    },
    onChange: () => queue.review(),
    onSend: (event) => events?.waited(event),
  });
  const cache = new PetCache(memory, clock);
  const sharedLists = options.sharedLists?.join(apiKey, cache, (snapshot) => queue.receiveShared(snapshot));
  const visitorShares = new VisitorShares({ throttle, clock, replicas: options.replicas });
  const refreshBudget = createRefreshBudget(clock.elapsed, throttle, options.replicas);
  const parts = {
    ...shared,
    apiKey,
    petApi,
    clock,
    log,
    throttle,
    visitorShares,
    cache,
    failedCalls: new FailedCalls(clock),
    refreshBudget,
    rejectedKey: {
      error: () => rejectedKeys.error(apiKey),
      accept: () => rejectedKeys.accept(apiKey),
      reject: onRejected,
    },
    sharedLists,
    onVisitorRefused: (kind: 'read' | 'write') => events?.visitorRefused({ kind }),
    onRetry: (key: ReadKey) => events?.retried({ operation: isList(key) ? 'listPets' : 'getPet' }),
  };
  const queue = new ReadQueue(parts);
  const reads = createPetReads({ ...parts, queue });
  const writes = createWrites(parts, options.submits);

  return {
    apiKey,
    begin: () => void (operations += 1),
    end: () => void (operations -= 1),
    /** Whether an operation, a call or a creation is under way: another caller of the key would not see what it writes. */
    isInUse: () => operations > 0 || throttle.isBusy() || writes.isBusy(),
    /** The reads and writes of one request. */
    pets: (request: RequestTerms) => createRequestPets({ reads, writes, clock, spans, request }),
    latestQuota,
    /** The same, with what other replicas have used. */
    readQuota: async (visitor: Visitor) => viewOf(await throttle.refreshed(), visitor),
    /** Returns the maximum of calls that these reads can cost now, retries aside. */
    maxCalls(keys: readonly ReadKey[], { maxAgeMs, mayCall }: Freshness): number {
      return mayCall ? estimateCalls(keys, clock.elapsed() - maxAgeMs, parts) : 0;
    },
    /**
     * Returns how long until the last of so many calls can be sent, as far as is known, behind those that wait. Reads the
     * account from the store.
     */
    async waitFor(calls: number, visitor: Visitor): Promise<ExpectedWait> {
      const state = await throttle.refreshed();
      const { waitMs, refused } = throttle.outlook(queue.wanted() + calls - 1);
      const share = visitorShares.minWait(visitor, calls, state);
      if (calls > 0 && share.waitMs > waitMs) return share;
      return calls > 0 && waitMs > 0 ? { waitMs, window: refused.window } : { waitMs: 0, window: undefined };
    },
    /** Counts what an operation has saved. */
    recordSavings(calls: SavedCalls) {
      for (const [reason, count] of Object.entries(calls)) {
        savedCalls += count;
        events?.saved({ reason, calls: count });
      }
    },
    /** With the calls made and saved by this process since it created the caller. Undefined before the first call. */
    view() {
      const quota = latestQuota();
      if (!quota) return undefined;
      return {
        get name() {
          return nameOf(apiKey);
        },
        quota,
        made: refreshBudget.calls(),
        saved: savedCalls,
        /** Whether the pet API rejected the key, so that petql makes no call with it for now. */
        get isRejected() {
          return rejectedKeys.error(apiKey) !== undefined;
        },
      };
    },
    /** Frees what it holds, after its eviction. */
    leave() {
      sharedLists?.leave();
      cache.clear();
    },
    async close() {
      queue.close();
      await Promise.all([throttle.close(), writes.close()]);
    },
  };

  /** No call with the key is sent for a while, and nobody gets data for it: here at once, by other replicas within a second. */
  function onRejected(): void {
    rejectedKeys.reject(apiKey);
    cache.clear();
    // Nobody has data of a key that was made up: announcing it would store a document, and a warning would fill the log.
    if (!options.accounts.isProven(apiKey)) return log.debug?.({}, 'the pet API does not know this key');
    log.warn({}, 'the pet API rejects a key that it has accepted before');
    void sharedLists?.announce();
  }

  /** The quota as this process knows it, for the headers of a response; undefined before the first call. */
  function latestQuota(visitor?: Visitor): QuotaView | undefined {
    const quotaState = throttle.quotaState();
    return quotaState && viewOf(quotaState, visitor);
  }

  function viewOf(quotaState: QuotaState, visitor: Visitor): QuotaView {
    const shown = visitorShares.quotaOf(visitor, quotaState);
    return quotaViewOf(shown, throttle.waitingWrites() + queue.wanted(), clock.now());
  }
}
