import { randomUUID } from 'node:crypto';
import { steadyTime, systemClock } from '../common/clock.ts';
import type { Events } from '../common/events.ts';
import { SharedLists } from '../reads/cache/shared-lists.ts';
import type { CheckedOptions } from '../settings/settings.ts';
import { openFileStore } from '../store/file-store.ts';
import { withKeySecret } from '../store/key-secret.ts';
import { createMemoryStore } from '../store/memory-store.ts';
import { createNames } from '../store/names.ts';
import type { NameOf } from '../store/names.ts';
import { RedisStore } from '../store/redis-store.ts';
import { connectRedis } from '../store/redis.ts';
import { ALONE, Replicas } from '../store/replicas.ts';
import type { RedisState, ReplicaView } from '../store/replicas.ts';
import { joinStores } from '../store/shared-stores.ts';
import type { Shareable } from '../store/shared-stores.ts';
import { StoreUnavailableError } from '../store/store.ts';
import type { AccountRules } from '../quota/account/limits.ts';
import { LocalAccounts, StoredAccounts } from '../quota/account-store.ts';
import type { AccountStore } from '../quota/account-store.ts';
import { IdempotencyRecords } from '../writes/records.ts';
import { LATE_COUNT_MS } from '../common/call-times.ts';

/** The store and the parts that use it. */
export interface Stores {
  readonly accounts: AccountStore;
  /** Idempotency records. */
  readonly records: IdempotencyRecords;
  readonly nameOf: NameOf;
  /** The processes that share the store. */
  readonly replicas: ReplicaView;
  /** Shares lists between replicas; undefined without Redis. */
  readonly sharedLists: SharedLists | undefined;
  /** At this moment; undefined without Redis. */
  readonly redisState: () => RedisState | undefined;
  /** @throws SettingError when the store has another key secret. */
  readonly ready: () => Promise<void>;
  /** Stores outcomes, and then closes the store. */
  readonly close: () => Promise<void>;
}

/** Opens the store: Redis for many replicas, a file or memory for one process. Builds the parts that use it. */
export function openStores(options: CheckedOptions, opened: DisposableStack, events: Events | undefined): Stores {
  const { redisUrl, clock, dispatcher, petApiUrl, keySecret } = options;
  const nameOf = createNames(petApiUrl, keySecret);
  if (redisUrl !== undefined) return openReplicated(options, redisUrl, { nameOf, opened, events });

  // A clock or a dispatcher of a test stands for another process.
  const isProcess = clock === systemClock && dispatcher === undefined;
  const stores = isProcess
    ? joinStores({ ...options, ownerName: nameOf('') }, () => openLocal(options, nameOf))
    : openLocal(options, nameOf);
  opened.defer(() => stores.dispose());
  return stores;
}

interface ReplicatedParts {
  readonly nameOf: NameOf;
  readonly opened: DisposableStack;
  readonly events: Events | undefined;
}

/** Opens those that all replicas share. */
function openReplicated(
  options: CheckedOptions,
  redisUrl: string,
  { nameOf, opened, events }: ReplicatedParts,
): Stores {
  const { keySecret, stateFile, clock, log, redisConnection = connectRedis(redisUrl, options.log) } = options;
  if (stateFile !== undefined) log.warn({ stateFile }, 'the state file is not used, since Redis is');
  const replica = randomUUID();
  const redis = new RedisStore(redisConnection, clock.elapsed, events);
  opened.defer(() => void redis.close());
  const replicas = new Replicas({ store: redis, nameOf, replica, log });
  opened.defer(() => replicas.close());

  const { store, check } = withKeySecret(redis, keySecret, log);
  const keptMs = Math.max(options.maxAgeMs, options.maxStaleMs);
  const sharedLists = new SharedLists({ store, redis, nameOf, log, replica, clock, keptMs, replicas });
  replicas.onBeat(() => sharedLists.flush());
  const rules: AccountRules = {
    ...rulesOf(options),
    /** A time of Redis, which only a reply has. */
    get startedAtMs() {
      return replicas.startedAtMs ?? store.nowMs();
    },
  };
  const accounts = new StoredAccounts(store, rules, log);
  const records = new IdempotencyRecords(store, nameOf, log);
  return {
    accounts,
    records,
    nameOf,
    replicas,
    sharedLists,
    redisState: () => replicas.redisState,
    ready: readyBy(check),
    async close() {
      await records.close();
      replicas.close();
      await store.close();
    },
  };
}

/** Opens those of one process. */
function openLocal(options: CheckedOptions, nameOf: NameOf): Shareable<CheckedOptions> & Stores {
  const { stateFile, keySecret, clock, log } = options;
  const nowMs = steadyTime(clock);
  using opening = new DisposableStack();
  const local = stateFile === undefined ? createMemoryStore(nowMs) : openFileStore(stateFile, nowMs, log);
  opening.defer(() => void local.close());
  const { store, check } = withKeySecret(local, keySecret, log);
  const rules = { ...rulesOf(options), startedAtMs: store.nowMs() };
  const file = stateFile === undefined ? undefined : new StoredAccounts(store, rules, log);
  const accounts = new LocalAccounts(store, rules, file);
  const records = new IdempotencyRecords(store, nameOf, log);
  const opened = opening.move();
  return {
    accounts,
    records,
    nameOf,
    replicas: ALONE,
    sharedLists: undefined,
    redisState: () => undefined,
    ready: readyBy(check),
    async close() {
      await records.close();
      await accounts.flush();
      await store.close();
    },
    dispose: () => opened.dispose(),

    // As with replicas, the plan of the gateway that started last counts.
    admit(joining) {
      const { plan, planShare, leaseMs, probeMs } = rulesOf(joining);
      if (plan.known) Object.assign(rules, { plan, startedAtMs: store.nowMs() });
      rules.planShare = Math.min(rules.planShare, planShare);
      rules.leaseMs = Math.max(rules.leaseMs, leaseMs);
      rules.probeMs = Math.max(rules.probeMs, probeMs);
    },
  };
}

function rulesOf({ plan, planShare, upstreamTimeoutMs }: CheckedOptions) {
  return {
    plan,
    planShare,
    // A call may wait for its connection as long as for its response.
    leaseMs: 2 * upstreamTimeoutMs + LATE_COUNT_MS,
    probeMs: 2 * upstreamTimeoutMs,
  };
}

function readyBy(check: () => Promise<void>): () => Promise<void> {
  void check().catch(() => {});
  return () =>
    check().catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) throw error;
    });
}
