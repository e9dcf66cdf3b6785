import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { createCallers } from './caller/callers.ts';
import { steadyTime, systemClock } from './clock.ts';
import type { Clock } from './clock.ts';
import type { Log } from './log.ts';
import { PLANS } from './plan.ts';
import type { AssumedPlan } from './plan.ts';
import { createGraphqlServer } from './server/graphql-server.ts';
import type { RequestHandler } from './server/listener.ts';
import { createNodeHandler } from './server/node-handler.ts';
import { openStateFile } from './store/state-file.ts';
import { connectRedis } from './store/redis.ts';
import { createCallerNames, createSharedCallerNames, newSecret } from './throttle/caller-names.ts';
import { createFailoverLedger } from './throttle/failover-ledger.ts';
import type { LedgerRules } from './throttle/ledger-state.ts';
import type { Ledger } from './throttle/ledger.ts';
import { createMemoryLedger } from './throttle/memory-ledger.ts';
import type { KeptStates } from './throttle/memory-ledger.ts';
import { createRedisLedger } from './throttle/redis-ledger.ts';
import { createReplicas } from './throttle/replicas.ts';
import { createUpstreamClock } from './throttle/upstream-clock.ts';
import { createPetApi } from './upstream/pet-api.ts';
import { createTransport } from './upstream/transport.ts';

export interface GatewayOptions {
  /** The base address of the pet adoption service, with its `/v1`. */
  readonly petApiUrl: URL;
  /** The API key for every request. Default: each caller brings one. */
  readonly petApiKey?: string;
  /** How long one upstream call may take, in milliseconds. Default 5000. */
  readonly upstreamTimeoutMs?: number;
  /** How long a request may wait for the plan, in milliseconds. Default 10000. */
  readonly maxWaitMs?: number;
  /** How old an answer may be to be served as it is, in milliseconds. Default 1000. */
  readonly maxAgeMs?: number;
  /** How old an answer may be to be better than none, in milliseconds. Default 600000. */
  readonly maxStaleMs?: number;
  /** What callers may call before the upstream tells. Default: the Free plan, not known. */
  readonly plan?: AssumedPlan;
  /** Whether the upstream was started with this gateway, so that no call came before. Default false. */
  readonly freshUpstream?: boolean;
  /** The Redis that replicas share what they spent in. Default: none, this is the only process. */
  readonly redisUrl?: string;
  /** Where one process without Redis keeps what it spent. Default: in memory. */
  readonly stateFile?: string;
  /** Hashes API keys wherever they are kept. Default: made once, and kept with them. */
  readonly keySecret?: string;
  /** The key that GraphiQL starts with; only one that is no secret. Default: a placeholder. */
  readonly graphiqlKey?: string;
  readonly log: Log;
  readonly clock?: Clock;
}

export interface Gateway {
  /** Answers the requests of Node's http server. */
  readonly handle: RequestHandler;
  /** Refuses the calls that wait for the plan, and every new one; settles once those under way are over. */
  drain(): Promise<void>;
  /** Drains, for a moment at most; writes down what was spent, and closes every connection. */
  close(): Promise<void>;
}

/** Calls under way have had their time by then; what was spent must be written down in any case. */
const CLOSE_AFTER_MS = 500;

/** The one place where the parts are put together. Two gateways share nothing. */
export function createGateway(options: GatewayOptions): Gateway {
  const { petApiUrl, petApiKey, graphiqlKey, log, clock = systemClock } = options;
  const { upstreamTimeoutMs = 5_000, maxWaitMs = 10_000, maxAgeMs = 1_000, maxStaleMs = 600_000 } = options;
  const { plan = { ...PLANS.free, known: false } } = options;
  const transport = createTransport({ baseUrl: petApiUrl, timeoutMs: upstreamTimeoutMs });
  const { ledger, replicas } = createLedger({ ...options, clock, rules: { plan, probeMs: upstreamTimeoutMs } });
  const callers = createCallers({
    petApi: createPetApi(transport, clock),
    ledger,
    replicas,
    upstreamClock: createUpstreamClock(clock),
    clock,
  });
  const server = createGraphqlServer({
    callers,
    clock,
    maxWaitMs,
    freshness: { maxAgeMs, maxStaleMs },
    log,
    ...(petApiKey === undefined ? {} : { serverKey: petApiKey }),
    ...(graphiqlKey === undefined ? {} : { graphiqlKey }),
  });
  return {
    handle: createNodeHandler((request) => server.fetch(request)),
    drain: () => callers.close(),
    async close() {
      await Promise.race([callers.close(), setTimeout(CLOSE_AFTER_MS, undefined, { ref: false })]);
      await ledger.close();
      await transport.close();
    },
  };
}

type LedgerOptions = GatewayOptions & { readonly clock: Clock; readonly rules: LedgerRules };

interface LedgerOfReplicas {
  readonly ledger: Ledger;
  /** How many processes share it. */
  replicas(): number;
}

/** Where spent calls are kept: in Redis for many replicas, in a file or in memory for one process. */
function createLedger(options: LedgerOptions): LedgerOfReplicas {
  const { redisUrl, stateFile, keySecret, rules, clock, log, freshUpstream = false } = options;
  const now = steadyTime(clock);
  if (redisUrl === undefined) {
    const kept = stateFile === undefined ? {} : { kept: openKeptStates(stateFile, keySecret, now) };
    const ledger = createMemoryLedger({ rules, now, log, firstEver: freshUpstream, ...kept });
    return { ledger, replicas: () => 1 };
  }
  if (stateFile !== undefined) log.warn('the state file is not used, since there is a Redis');
  const redis = connectRedis({ url: redisUrl, log });
  const replica = randomUUID();
  const replicas = createReplicas(redis, replica);
  const nameOf = keySecret === undefined ? createSharedCallerNames(redis) : createCallerNames(keySecret);
  const shared = createRedisLedger({ redis, rules, nameOf, replica });
  const ledger = createFailoverLedger({ shared, replicas, rules, clock, now });
  const close = async () => {
    replicas.close();
    await ledger.close();
    redis.close();
  };
  return { ledger: { ...ledger, close }, replicas: () => replicas.count };
}

function openKeptStates(path: string, keySecret: string | undefined, now: () => number): KeptStates {
  const file = (() => {
    try {
      return openStateFile(path, now);
    } catch (error) {
      const reason = (error as Error).message;
      const why = reason.includes('locked') ? 'another process uses it' : reason;
      throw new Error(`--state-file (STATE_FILE): cannot use ${path}: ${why}`, { cause: error });
    }
  })();
  const secret = keySecret ?? file.get('key-secret') ?? newSecret();
  // Set anew at each start, so that it is never forgotten for its age.
  if (keySecret === undefined) file.setAll([['key-secret', secret]]);
  return { file, nameOf: createCallerNames(secret) };
}
