import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import type { Events } from '../events.ts';
import type { Log } from '../log.ts';
import { createGetRoute } from '../reads/get-route.ts';
import { createSnapshotMemory } from '../reads/pet-cache.ts';
import { createRetryBudget } from '../reads/retry-budget.ts';
import type { SharedLists } from '../reads/shared-lists.ts';
import type { Spans } from '../tracing.ts';
import type { NameOf } from '../store/names.ts';
import type { Accounts } from '../throttle/accounts.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import type { SubmitRecords } from '../writes/idempotency.ts';
import { createCaller } from './caller.ts';
import type { Caller, CallerView } from './caller.ts';

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

const MIN_IDLE_MS = 900_000;
/** A caller takes some kilobytes; one that is evicted loses its cache alone. */
const MAX_CALLERS = 10_000;
const PURGE_EVERY_MS = 60_000;

export type Callers = ReturnType<typeof createCallers>;

/** The callers of a gateway, by their API keys. */
export function createCallers(options: CallersOptions) {
  const { clock, log, idleMs } = options;
  const getRoute = createGetRoute(clock, log);
  const shared = { getRoute, retryBudget: createRetryBudget(), memory: createSnapshotMemory() };
  const callers = new LRUCache<string, Caller>({
    max: MAX_CALLERS,
    ttl: Math.max(idleMs, MIN_IDLE_MS),
    updateAgeOnGet: true,
    ttlResolution: 0,
    perf: { now: clock.elapsed },
    // Its calls in flight go on.
    dispose: (caller) => caller.leave(),
  });
  const purging = setInterval(() => callers.purgeStale(), PURGE_EVERY_MS).unref();
  let isClosing = false;

  return {
    /** The caller with this API key; the same one for the same key. */
    withKey(apiKey: string): Caller {
      const known = callers.get(apiKey);
      if (known) return known;
      const caller = createCaller(apiKey, shared, options);
      callers.set(apiKey, caller);
      if (isClosing) void caller.close();
      return caller;
    },
    getRoute,
    /** Those that have called, the latest first. */
    views: (): CallerView[] => [...callers.values()].flatMap((caller) => caller.view() ?? []),
    /** How many keys are paused. */
    pausedKeys: () => [...callers.values()].filter((caller) => caller.isPaused()).length,
    /** Refuses waiting and new calls, and settles once the calls in flight are over and stored. */
    async close() {
      isClosing = true;
      clearInterval(purging);
      await Promise.all([...callers.values()].map((caller) => caller.close()));
    },
  };
}
