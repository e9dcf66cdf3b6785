import { expect, test } from 'vitest';
import { createGetRoute } from '../../src/caller/get-route.ts';
import { createKnowledge } from '../../src/caller/knowledge.ts';
import { createReads } from '../../src/caller/reads.ts';
import { createRefusedKey } from '../../src/caller/refused-key.ts';
import { createRetryQuota } from '../../src/caller/retry-quota.ts';
import { systemClock } from '../../src/clock.ts';
import type { Int64 } from '../../src/int64.ts';
import { silentLog } from '../../src/log.ts';

const NO_ONE = { kind: 'refused', reason: 'plan', retryAfterMs: 1_000, window: 'MINUTE' } as const;

test('demands that come together are planned once, not once for each', async () => {
  let looked = 0;
  const throttle = {
    pass: () => new Promise<never>(() => undefined),
    standing: () => undefined,
    outlook: () => {
      looked += 1;
      return { waitMs: 0, refused: NO_ONE };
    },
  };
  const gone = new AbortController();
  const reads = createReads({
    apiKey: 'key',
    petApi: {} as any,
    throttle: throttle as any,
    refusedKey: createRefusedKey(systemClock),
    getRoute: createGetRoute({ clock: systemClock, log: silentLog, upstreamNow: () => 0 }),
    knowledge: createKnowledge(),
    allowance: { allows: () => true, spend: () => undefined, refund: () => undefined },
    clock: systemClock,
    share: undefined,
    retryQuota: createRetryQuota(systemClock),
    onRetry: () => undefined,
  });
  const freshness = { maxAgeMs: 0, maxStaleMs: 0, joinsSentMs: Infinity, mayCall: true, spares: false };
  const turn = {
    freshness,
    deadlineMs: Infinity,
    signal: gone.signal,
    charge: () => undefined,
    refund: () => undefined,
  };
  const waiting = Array.from({ length: 100 }, (_, index) =>
    reads.wait({ kind: 'animal', id: String(index) as Int64 }, { ...turn, deadlineMs: systemClock.elapsed() + 60_000 }),
  );
  const settled = Promise.allSettled(waiting);
  await Promise.resolve();
  // Each review looks at the outlook of the last planned call: for a hundred ids of a store of unknown size, it is the only one.
  expect(looked).toBe(1);
  gone.abort();
  await settled;
  expect(looked).toBe(1);
});
