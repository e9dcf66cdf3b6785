import type { Clock } from '../clock.ts';
import type { Events } from '../events.ts';
import { keyLog } from '../log.ts';
import type { Log } from '../log.ts';
import { FailedCalls } from '../reads/failed-calls.ts';
import type { GetRoute } from '../pets/get-route.ts';
import { PetCache } from '../reads/cache/pet-cache.ts';
import { PetReads } from '../reads/pet-reads.ts';
import { isList } from '../pets/read-key.ts';
import type { ReadKey } from '../pets/read-key.ts';
import { ReadQueue } from '../reads/read-queue.ts';
import type { CallerLists } from '../reads/cache/caller-lists.ts';
import type { SharedLists } from '../reads/cache/shared-lists.ts';
import type { SnapshotMemory } from '../reads/cache/snapshot-memory.ts';
import type { NameOf } from '../store/names.ts';
import type { Accounts } from '../throttle/accounts.ts';
import { CallLine } from '../throttle/call-line.ts';
import { RefreshBudget } from '../throttle/refresh-budget.ts';
import type { RetryBudget } from '../throttle/retry-budget.ts';
import { VisitorCalls } from '../throttle/visitor-calls.ts';
import type { Spans } from '../tracing.ts';
import type { PetApi } from '../pets/pet-api.ts';
import type { IdempotencySettings } from '../writes/idempotency.ts';
import { Writes } from '../writes/writes.ts';
import type { ConsumerRows } from './consumers.ts';
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
  /** Whether the keys are the demo keys of the sandbox. */
  readonly isDemo: boolean;
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
  readonly consumerRows: ConsumerRows;
}

/** What it takes to read and write pets with one API key. */
export interface PetAccess {
  readonly line: CallLine;
  readonly cache: PetCache;
  readonly queue: ReadQueue;
  readonly reads: PetReads;
  readonly writes: Writes;
  readonly visitors: VisitorCalls;
  /** Undefined without Redis. */
  readonly sharedLists: CallerLists | undefined;
}

/** Puts together what one caller needs for its reads and writes. */
export function createPetAccess(apiKey: string, shared: SharedParts): PetAccess {
  const { accounts, clock, events, memory, nameOf, rejectedKeys, replicas } = shared;
  const log = keyLog(shared.log, () => nameOf(apiKey));
  const cache = new PetCache(memory, clock);
  const visitors = new VisitorCalls(clock, replicas);
  const line = new CallLine({
    apiKey,
    accounts,
    visitors,
    refreshBudget: new RefreshBudget(clock),
    retryBudget: shared.retryBudget,
    rejectedKey: {
      error: () => rejectedKeys.error(apiKey),
      accept: () => rejectedKeys.accept(apiKey),
      reject: onRejected,
    },
    replicas,
    clock,
    log,
    events,
  });
  const sharedLists = shared.sharedLists?.join(apiKey, cache, (snapshot) => queue.receiveShared(snapshot));
  const parts = {
    apiKey,
    petApi: shared.petApi,
    clock,
    log,
    line,
    cache,
    failedCalls: new FailedCalls(clock),
    getRoute: shared.getRoute,
    retryBudget: shared.retryBudget,
    sharedLists,
    onRetry: (key: ReadKey) => events?.retried({ operation: isList(key) ? 'listPets' : 'getPet' }),
  };
  const queue = new ReadQueue(parts);
  const reads = new PetReads({ ...parts, queue });
  const writes = new Writes({ ...parts, idempotency: shared.idempotency });
  return { line, cache, queue, reads, writes, visitors, sharedLists };

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
