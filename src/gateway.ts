import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { GraphQLSchema } from 'graphql';
import { createCallers } from './caller/callers.ts';
import { steadyTime } from './clock.ts';
import { checkedOptions } from './gateway-options.ts';
import type { CheckedOptions, GatewayOptions } from './gateway-options.ts';
import { schema } from './schema/schema.ts';
import { createGraphqlServer } from './server/graphql-server.ts';
import type { RequestHandler } from './server/listener.ts';
import { createNodeHandler } from './server/node-handler.ts';
import type { Execute } from './server/operation.ts';
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

export interface Gateway {
  /** Answers GraphQL over HTTP: a standard fetch handler, for frameworks and for tests. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** The same for Node's http server, and for what is built on its requests and responses. */
  readonly handle: RequestHandler;
  /** Runs an operation in this process, without HTTP. */
  readonly execute: Execute;
  /** The GraphQL API, for whoever prints or explores it. */
  readonly schema: GraphQLSchema;
  /** Refuses the calls that wait for the plan, and every new one; settles once those under way are over. */
  readonly drain: () => Promise<void>;
  /** Drains, for a moment at most; writes down what was spent, and closes every connection. */
  readonly close: () => Promise<void>;
}

/** Calls under way have had their time by then; what was spent must be written down in any case. */
const CLOSE_AFTER_MS = 500;

/**
 * The one place where the parts are put together. Two gateways share nothing.
 *
 * @throws TypeError that names every wrong option.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const checked = checkedOptions(options);
  const { petApiUrl, petApiKey, endpoint, graphiqlKey, plan, log, clock } = checked;
  const { upstreamTimeoutMs, maxWaitMs, maxAgeMs, maxStaleMs, heedCacheControl } = checked;
  const transport = createTransport({ baseUrl: petApiUrl, timeoutMs: upstreamTimeoutMs });
  const { ledger, replicas } = createLedger({ ...checked, rules: { plan, probeMs: upstreamTimeoutMs } });
  const callers = createCallers({
    petApi: createPetApi(transport, clock),
    ledger,
    replicas,
    upstreamClock: createUpstreamClock(clock),
    clock,
  });
  const { fetch, fastPath, execute } = createGraphqlServer({
    callers,
    clock,
    maxWaitMs,
    freshness: { maxAgeMs, maxStaleMs },
    heedCacheControl,
    endpoint,
    log,
    ...(petApiKey === undefined ? {} : { serverKey: petApiKey }),
    ...(graphiqlKey === undefined ? {} : { graphiqlKey }),
  });
  return {
    fetch,
    handle: createNodeHandler(fetch, fastPath),
    execute,
    schema,
    drain: () => callers.close(),
    async close() {
      await Promise.race([callers.close(), setTimeout(CLOSE_AFTER_MS, undefined, { ref: false })]);
      await ledger.close();
      await transport.close();
    },
  };
}

type LedgerOptions = CheckedOptions & { readonly rules: LedgerRules };

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
  if (stateFile !== undefined) log.warn({ stateFile }, 'the state file is not used, since there is a Redis');
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
      throw new Error(`createGateway: stateFile: cannot use ${path}: ${why}`, { cause: error });
    }
  })();
  const secret = keySecret ?? file.get('key-secret') ?? newSecret();
  // Set anew at each start, so that it is never forgotten for its age.
  if (keySecret === undefined) file.setAll([['key-secret', secret]]);
  return { file, nameOf: createCallerNames(secret) };
}
