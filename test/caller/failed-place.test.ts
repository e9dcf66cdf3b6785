import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readFreshness } from '../../src/caller/freshness.ts';
import { createKnowledge } from '../../src/caller/knowledge.ts';
import { createReads } from '../../src/caller/reads.ts';
import { createRefusedKey } from '../../src/caller/refused-key.ts';
import { steadyRoute } from './steady-route.ts';

// The place that had failed was taken for one that is still waited for, so that no other was ever asked for.
test('after a place in the plan has failed, whoever comes next gets another', async () => {
  const clock = { now: () => 100_000, elapsed: () => 100_000 };
  let asked = 0;
  const throttle = {
    pass: () => ((asked += 1) === 1 ? Promise.reject(new Error('a mistake')) : new Promise<never>(() => undefined)),
    standing: () => undefined,
    outlook: () => ({ waitMs: 0 }),
  };
  const reads = createReads({
    apiKey: 'key',
    petApi: {} as any,
    throttle: throttle as any,
    refusedKey: createRefusedKey(clock),
    getRoute: steadyRoute(true),
    knowledge: createKnowledge(),
    allowance: { allows: () => true, spend: () => undefined, refund: () => undefined },
    clock,
    retryQuota: { called: () => undefined, room: 1, take: () => true },
    share: () => ({
      sync: () => Promise.resolve(),
      glance() {},
      writes: '',
      share() {},
      wrote: async () => {},
      leave() {},
    }),
    onRetry: () => undefined,
  });
  const wait = () =>
    reads.wait(
      { kind: 'listing', listing: 'all' },
      {
        freshness: readFreshness(undefined, { maxAgeMs: 0, maxStaleMs: 0 }),
        deadlineMs: Infinity,
        signal: new AbortController().signal,
        charge: () => undefined,
        refund: () => undefined,
      },
    );
  await expect(wait()).rejects.toThrow('a mistake');
  void wait();
  await setImmediate();
  expect(asked).toBe(2);
});
