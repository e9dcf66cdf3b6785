import { randomUUID } from 'node:crypto';
import { steadyTime } from './clock.ts';
import type { Events } from './events.ts';
import { SharedLists } from './reads/cache/shared-lists.ts';
import type { CheckedOptions } from './settings/settings.ts';
import { openFileStore } from './store/file-store.ts';
import { withKeySecret } from './store/key-secret.ts';
import { createMemoryStore } from './store/memory-store.ts';
import { createNames } from './store/names.ts';
import type { NameOf } from './store/names.ts';
import { RedisStore } from './store/redis-store.ts';
import { connectRedis } from './store/redis.ts';
import { ALONE, Replicas } from './store/replicas.ts';
import type { RedisState, ReplicaCount } from './store/replicas.ts';
import { StoreUnavailableError } from './store/store.ts';
import type { SharedStore, Store } from './store/store.ts';
import type { AccountRules } from './throttle/account/limits.ts';
import type { Accounts } from './throttle/accounts.ts';
import { DurableAccounts } from './throttle/durable-accounts.ts';
import { MemoryAccounts } from './throttle/memory-accounts.ts';
import { IdempotencyRecords } from './writes/records.ts';

/** After the timeout of a call without a response, the upstream may still count it for this long. */
const LATE_COUNT_MS = 60_000;

/** The store and the parts that use it. */
export interface Stores {
  readonly accounts: Accounts;
  /** Idempotency records. */
  readonly records: IdempotencyRecords;
  readonly nameOf: NameOf;
  /** The processes that share the store. */
  readonly replicas: ReplicaCount;
  /** Shares lists between replicas; undefined without Redis. */
  readonly sharedLists: SharedLists | undefined;
  /** At this moment; undefined without Redis. */
  readonly redisState: RedisState | undefined;
  /** @throws SettingError when the store has another key secret. */
  readonly ready: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Opens the store: Redis for many replicas, a file or memory for one process. Builds the parts that use it. */
export function openStores(options: CheckedOptions, opened: DisposableStack, events: Events | undefined): Stores {
  const { petApiUrl, keySecret, clock, log } = options;
  const nameOf = createNames(petApiUrl, keySecret);
  const replica = randomUUID();

  const redis = openRedis(options, events);
  const opening = redis ?? openLocal(options);
  opened.defer(() => void opening.close());
  const replicas = redis && new Replicas({ store: redis, nameOf, replica, log });
  opened.defer(() => replicas?.close());

  const { store, check } = withKeySecret(opening, keySecret, log);
  void check().catch(() => {});
  const sharedLists =
    redis &&
    replicas &&
    new SharedLists({
      store,
      redis,
      nameOf,
      log,
      replica,
      clock,
      keptMs: Math.max(options.maxAgeMs, options.maxStaleMs),
      replicas,
    });
  replicas?.onBeat(() => sharedLists?.flush());

  const accountsOptions = { store, nameOf, rules: accountRules(options, store, replicas), log, replicas };
  const isInMemory = !redis && options.stateFile === undefined;
  return {
    accounts: isInMemory ? new MemoryAccounts(accountsOptions) : new DurableAccounts(accountsOptions),
    records: new IdempotencyRecords(store, nameOf, log),
    nameOf,
    replicas: replicas ?? ALONE,
    sharedLists,

    get redisState() {
      return replicas?.redisState;
    },

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

function accountRules(
  { plan, upstreamTimeoutMs }: CheckedOptions,
  store: Store,
  replicas: Replicas | undefined,
): AccountRules {
  const openedAtMs = store.nowMs();
  return {
    plan,
    /** A time of Redis, which only a reply has. */
    get startedAtMs() {
      return replicas ? (replicas.startedAtMs ?? store.nowMs()) : openedAtMs;
    },
    // A call may wait for its connection as long as for its response.
    leaseMs: 2 * upstreamTimeoutMs + LATE_COUNT_MS,
    probeMs: 2 * upstreamTimeoutMs,
  };
}

function openRedis(options: CheckedOptions, events: Events | undefined): SharedStore | undefined {
  const { redisUrl, stateFile, clock, log } = options;
  if (redisUrl === undefined) return undefined;
  if (stateFile !== undefined) log.warn({ stateFile }, 'the state file is not used, since Redis is');
  const { redisConnection = connectRedis(redisUrl) } = options;
  return new RedisStore(redisConnection, clock.elapsed, events);
}

function openLocal({ stateFile, clock, log }: CheckedOptions): Store {
  const nowMs = steadyTime(clock);
  return stateFile === undefined ? createMemoryStore(nowMs) : openFileStore(stateFile, nowMs, log);
}
