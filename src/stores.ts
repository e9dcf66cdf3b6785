import { randomUUID } from 'node:crypto';
import { steadyTime } from './clock.ts';
import type { Events } from './events.ts';
import { SharedLists } from './reads/shared-lists.ts';
import type { CheckedOptions } from './settings.ts';
import { openFileStore } from './store/file-store.ts';
import { withKeySecret } from './store/key-secret.ts';
import { createMemoryStore } from './store/memory-store.ts';
import { createNames } from './store/names.ts';
import { createRecords } from './store/records.ts';
import { connectRedis } from './store/redis.ts';
import { createRedisStore } from './store/redis-store.ts';
import { StoreUnavailableError } from './store/store.ts';
import type { SharedStore, Store } from './store/store.ts';
import { timedConnection } from './store/timed-connection.ts';
import { createAccounts } from './throttle/accounts.ts';
import { Replicas } from './throttle/replicas.ts';

/** The upstream may count a call without a response so long after its timeout. */
const LATE_COUNT_MS = 60_000;

/** Opens the store, in Redis for many replicas, in a file or in memory for one process, and what is built on it. */
export function openStores(options: CheckedOptions, opened: DisposableStack, onUpdate: Events['storeUpdate']) {
  const { petApiUrl, keySecret, clock, log, plan, upstreamTimeoutMs } = options;
  const redis = openRedis(options, onUpdate);
  const opening = redis ?? openLocal(options);
  opened.defer(() => void opening.close());
  const nameOf = createNames(petApiUrl, keySecret);
  const replica = randomUUID();
  const replicas = redis && new Replicas({ store: redis, nameOf, replica, log });
  opened.defer(() => replicas?.close());
  const { store, check } = withKeySecret(opening, keySecret, log);
  void check().catch(() => {});
  const sharedLists =
    redis &&
    replicas &&
    new SharedLists({
      store: { ...redis, ...store },
      nameOf,
      log,
      replica,
      clock,
      keptMs: Math.max(options.maxAgeMs, options.maxStaleMs),
      works: () => replicas.isRedisWorking,
      replicaCount: () => replicas.count,
    });
  replicas?.onBeat(() => sharedLists?.flush());
  const openedAtMs = store.nowMs();
  return {
    accounts: createAccounts({
      store,
      nameOf,
      rules: {
        plan,
        /** By the clock of Redis, which only a reply has. */
        get startedAtMs() {
          return replicas ? (replicas.startedAtMs ?? store.nowMs()) : openedAtMs;
        },
        // A call may wait for its connection as long as for its response.
        leaseMs: 2 * upstreamTimeoutMs + LATE_COUNT_MS,
        probeMs: 2 * upstreamTimeoutMs,
      },
      log,
      replicas,
    }),
    /** Idempotency records. */
    records: createRecords(store, nameOf, log),
    nameOf,
    /** Returns how many processes share the store. */
    replicas: () => replicas?.count ?? 1,
    /** Shares lists between replicas; undefined without Redis. */
    sharedLists,
    /** Returns whether Redis works; undefined without Redis. */
    redis: () => replicas && redisStateOf(replicas),
    /** @throws Error when the store has another key secret. */
    async ready() {
      await check().catch((error: unknown) => {
        if (!(error instanceof StoreUnavailableError)) throw error;
      });
    },
    async close() {
      replicas?.close();
      await store.close();
    },
  };
}

function redisStateOf({ startedAtMs, isRedisWorking }: Replicas): 'connected' | 'connecting' | 'unavailable' {
  if (startedAtMs === undefined) return 'connecting';
  return isRedisWorking ? 'connected' : 'unavailable';
}

function openRedis(options: CheckedOptions, onUpdate: Events['storeUpdate']): SharedStore | undefined {
  const { redisUrl, stateFile, clock, log } = options;
  if (redisUrl === undefined) return undefined;
  if (stateFile !== undefined) log.warn({ stateFile }, 'the state file is not used, since Redis is');
  const { redisConnection = connectRedis(redisUrl) } = options;
  return createRedisStore(timedConnection(redisConnection, onUpdate), clock.elapsed);
}

function openLocal({ stateFile, clock, log }: CheckedOptions): Store {
  const nowMs = steadyTime(clock);
  return stateFile === undefined ? createMemoryStore(nowMs) : openFileStore(stateFile, nowMs, log);
}
