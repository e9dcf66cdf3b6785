import type { Clock } from '../clock.ts';
import type { Events } from '../events.ts';
import { keyLog } from '../log.ts';
import type { Log } from '../log.ts';
import { FailedCalls } from '../reads/failed-calls.ts';
import type { GetRoute } from '../reads/get-route.ts';
import { PetCache } from '../reads/cache/pet-cache.ts';
import { PetReads } from '../reads/pet-reads.ts';
import { isList } from '../reads/cache/read-key.ts';
import type { ReadKey } from '../reads/cache/read-key.ts';
import { ReadQueue } from '../reads/read-queue.ts';
import { RefreshBudget } from '../reads/refresh-budget.ts';
import type { RetryBudget } from '../reads/retry-budget.ts';
import type { CallerLists } from '../reads/cache/caller-lists.ts';
import type { SharedLists } from '../reads/cache/shared-lists.ts';
import type { SnapshotMemory } from '../reads/cache/snapshot-memory.ts';
import type { NameOf } from '../store/names.ts';
import type { Accounts } from '../throttle/accounts.ts';
import { Throttle } from '../throttle/throttle.ts';
import { VisitorShares } from '../throttle/visitor-shares.ts';
import type { Spans } from '../tracing.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import type { IdempotencySettings } from '../writes/idempotency.ts';
import { Writes } from '../writes/writes.ts';
import type { RejectedKeys } from './rejected-keys.ts';

/** What a gateway gives to its callers. */
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
  readonly idempotency: IdempotencySettings;
  /** Names callers where they are shown and stored. */
  readonly nameOf: NameOf;
  readonly events: Events | undefined;
  readonly spans: Spans;
}

/** What all callers share. */
export interface SharedParts extends CallersOptions {
  readonly getRoute: GetRoute;
  readonly retryBudget: RetryBudget;
  readonly memory: SnapshotMemory;
  readonly rejectedKeys: RejectedKeys;
}

/** What it takes to read and write pets with one API key. */
export interface PetAccess {
  readonly throttle: Throttle;
  readonly cache: PetCache;
  readonly queue: ReadQueue;
  readonly reads: PetReads;
  readonly writes: Writes;
  readonly refreshBudget: RefreshBudget;
  readonly visitorShares: VisitorShares;
  /** Undefined without Redis. */
  readonly sharedLists: CallerLists | undefined;
}

/** Puts together what one caller needs for its reads and writes. */
export function createPetAccess(apiKey: string, shared: SharedParts): PetAccess {
  const { accounts, clock, events, memory, nameOf, rejectedKeys } = shared;
  const log = keyLog(shared.log, () => nameOf(apiKey));
  // The throttle pulls its calls from the queue, which needs the throttle: these arrows run after both are there.
  const throttle = new Throttle({
    apiKey,
    accounts,
    clock,
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
  const visitorShares = new VisitorShares({ throttle, clock, replicas: shared.replicas });
  const refreshBudget = new RefreshBudget({ clock, throttle, replicas: shared.replicas });
  const sharedLists = shared.sharedLists?.join(apiKey, cache, (snapshot) => queue.receiveShared(snapshot));
  const parts = {
    apiKey,
    petApi: shared.petApi,
    clock,
    log,
    throttle,
    visitorShares,
    cache,
    failedCalls: new FailedCalls(clock),
    getRoute: shared.getRoute,
    refreshBudget,
    retryBudget: shared.retryBudget,
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
  const reads = new PetReads({ ...parts, queue });
  const writes = new Writes({ ...parts, idempotency: shared.idempotency });
  return { throttle, cache, queue, reads, writes, refreshBudget, visitorShares, sharedLists };

  /** No call with the key is sent for a while, and nobody gets data for it: here at once, by other replicas within a second. */
  function onRejected(): void {
    rejectedKeys.reject(apiKey);
    cache.clear();
    // Nobody has data of a key that was made up: announcing it would store a document, and a warning would fill the log.
    if (!accounts.isProven(apiKey)) return log.debug?.({}, 'the pet API does not know this key');
    log.warn({}, 'the pet API rejects a key that it has accepted before');
    void sharedLists?.announce();
  }
}
