import { randomUUID } from 'node:crypto';
import { steadyTime } from './clock.ts';
import type { Log } from './log.ts';
import { createSharedLists } from './reads/shared-lists.ts';
import type { SharedLists } from './reads/shared-lists.ts';
import type { Health } from './server/http/health.ts';
import type { CheckedOptions } from './settings.ts';
import { openFileStore } from './store/file-store.ts';
import type { FileStore } from './store/file-store.ts';
import { createNameOf, createSecret, createSharedKeySecret, secretOfFile } from './store/key-secret.ts';
import type { NameOf } from './store/key-secret.ts';
import { createMemoryStore } from './store/memory-store.ts';
import { createRecords } from './store/records.ts';
import type { Records } from './store/records.ts';
import { connectRedis } from './store/redis.ts';
import { createRedisStore } from './store/redis-store.ts';
import { StoreUnavailableError } from './store/store.ts';
import type { Store } from './store/store.ts';
import type { AccountRules } from './throttle/account-limits.ts';
import { createLedger } from './throttle/ledger.ts';
import type { Ledger } from './throttle/ledger.ts';
import { createReplicas } from './throttle/replicas.ts';

export interface Stores {
  readonly ledger: Ledger;
  /** Idempotency records. */
  readonly records: Records;
  readonly nameOf: NameOf;
  /** Returns how many processes share the stores. */
  replicas(): number;
  /** Shares lists between replicas; undefined without Redis. */
  readonly sharedLists?: SharedLists;
  /** Returns whether Redis works; undefined without Redis. */
  redis(): Health['redis'];
  ready(): Promise<void>;
  close(): Promise<void>;
}

/** The upstream may count a call without a response so long after its timeout. */
const LATE_COUNT_MS = 60_000;

/** Opens the stores of accounts and records: in Redis for many replicas, in a file or in memory for one process. */
export function openStores(options: CheckedOptions, opened: DisposableStack): Stores {
  const { redisUrl, stateFile, keySecret, clock, log, freshUpstream } = options;
  if (redisUrl !== undefined) return openRedis(redisUrl, options, opened);
  const nowMs = steadyTime(clock);
  const { file, secret } =
    stateFile === undefined
      ? { file: undefined, secret: keySecret ?? createSecret() }
      : openFile(stateFile, { nowMs, given: keySecret, log });
  const nameOf = createNameOf(secret);
  const store = file ?? createMemoryStore(nowMs);
  opened.defer(() => void store.close());
  return {
    ledger: createLedger({
      store,
      nameOf,
      rules: rulesOf(options, store),
      log,
      isFreshUpstream: freshUpstream,
      isForgetful: !file && !freshUpstream,
    }),
    records: createRecords(store, nameOf),
    nameOf,
    replicas: () => 1,
    redis: () => undefined,
    ready: async () => {},
    close: () => store.close(),
  };
}

function openRedis(url: string, options: CheckedOptions, opened: DisposableStack): Stores {
  const { stateFile, keySecret, clock, log } = options;
  if (stateFile !== undefined) log.warn({ stateFile }, 'the state file is not used, since Redis is');
  const redis = options.redisConnection ?? connectRedis({ url });
  opened.defer(() => redis.close());
  const store = createRedisStore(redis, clock.elapsed);
  const replicas = createReplicas(store, randomUUID(), log);
  opened.defer(() => replicas.close());
  const secret = createSharedKeySecret(store, keySecret, log);
  replicas.onBeat(() => void secret.check().catch(() => {}));
  const { nameOf } = secret;
  const sharedLists = createSharedLists({
    store,
    nameOf,
    clock,
    keptMs: Math.max(options.maxAgeMs, options.maxStaleMs),
    works: () => replicas.isRedisWorking,
  });
  replicas.onBeat(() => sharedLists.flush());
  return {
    ledger: createLedger({ store, nameOf, rules: rulesOf(options, store), log, replicas }),
    records: createRecords(store, nameOf),
    nameOf,
    replicas: () => replicas.count,
    sharedLists,
    redis: () => (replicas.isRedisWorking ? 'connected' : 'unavailable'),
    async ready() {
      try {
        await secret.check();
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
      }
    },
    async close() {
      replicas.close();
      await store.close();
    },
  };
}

function rulesOf({ plan, upstreamTimeoutMs }: CheckedOptions, store: Store): AccountRules {
  return {
    plan,
    startedAtMs: store.nowMs(),
    // A call may wait for its connection as long as for its response.
    leaseMs: 2 * upstreamTimeoutMs + LATE_COUNT_MS,
    probeMs: 2 * upstreamTimeoutMs,
  };
}

/** Opens the file and reads its secret for the hashes of API keys. */
function openFile(
  path: string,
  { nowMs, given, log }: { readonly nowMs: () => number; readonly given: string | undefined; readonly log: Log },
): { file: FileStore; secret: string } {
  let file: FileStore | undefined;
  try {
    file = openFileStore(path, nowMs, log);
    return { file, secret: secretOfFile(file, given) };
  } catch (error) {
    void file?.close();
    throw new Error(`createGateway: stateFile: cannot use ${path}: ${(error as Error).message}`, { cause: error });
  }
}
