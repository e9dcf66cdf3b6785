import { setTimeout } from 'node:timers/promises';
import { steadyTime, systemClock } from '../../src/clock.ts';
import { connectRedis } from '../../src/store/redis.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import type { Report } from '../../src/throttle/ledger.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { createReplicas } from '../../src/throttle/replicas.ts';

const EVERY_MS = 100;
const RULES = { plan: { perMinute: 300, perDay: 10_000, known: true }, probeMs: 5_000 };

/** One more ledger beside the replicas', with a key and a namespace of its own, to see how long an exchange takes. */
export interface LedgerWatch {
  readonly longestMs: number;
  [Symbol.asyncDispose](): Promise<void>;
}

export function watchLedger(redisUrl: string): LedgerWatch {
  const redis = connectRedis({ url: redisUrl });
  // Its heartbeats are counted elsewhere: as one more replica it would take a share from the others.
  const replicas = createReplicas(
    { ...redis, run: (script, key, ...args) => redis.run(script, `watch:${key}`, ...args) },
    'watch',
  );
  const shared = createRedisLedger({ redis, rules: RULES, nameOf: (apiKey) => apiKey, replica: 'watch' });
  const now = steadyTime(systemClock);
  const ledger = createFailoverLedger({ shared, replicas, rules: RULES, clock: systemClock, now });
  let longestMs = 0;
  const stopping = new AbortController();
  const running = (async () => {
    let reports: Report[] = [];
    while (!stopping.signal.aborted) {
      const startedMs = performance.now();
      const { grants } = await ledger.exchange('watched', { reports, wanted: 1 });
      longestMs = Math.max(longestMs, Math.round(performance.now() - startedMs));
      reports = grants.map((grant) => ({ kind: 'returned', grant }));
      await setTimeout(EVERY_MS);
    }
  })();
  return {
    get longestMs() {
      return longestMs;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
      replicas.close();
      await ledger.close();
      redis.close();
    },
  };
}
