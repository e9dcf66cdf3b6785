import { expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { HANGS, fails, mixed, tooMany } from '../support/pet-api/fault.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';

/** Shares of the calls that meet 429, 503 and silence. */
const STORMS = [
  { name: '429 alone', refused: 1, failed: 0, silent: 0, maxMore: 8 },
  { name: '429 with a tenth of 503', refused: 0.9, failed: 0.1, silent: 0, maxMore: 10 },
  { name: 'as many 503 as 429', refused: 0.5, failed: 0.5, silent: 0, maxMore: 10 },
  { name: 'one 429, then 503 almost always', refused: 0.05, failed: 0.95, silent: 0, maxMore: 10 },
  { name: 'one 429, then silence almost always', refused: 0.05, failed: 0, silent: 0.95, maxMore: 10 },
  { name: 'a third of each', refused: 1 / 3, failed: 1 / 3, silent: 1 / 3, maxMore: 10 },
];

const KINDS = ['create', 'read'] as const;
const cases = STORMS.flatMap((storm, index) => {
  const kinds = index % 2 === 0 ? KINDS : KINDS.toReversed();
  return kinds.map((kind) => ({ ...storm, kind }));
});

// Each storm, by creates or by reads.
test.each(chooseCases(cases, 3))(
  'ten minutes of $name cost at most $maxMore calls after the first 429 ($kind)',
  async ({ refused, failed, silent, maxMore, kind }) => {
    await using world = await createWorld({
      seed: 5,
      startsAt: '2026-11-21T09:41:07Z',
      keys: { key: { ...PLANS.pro, windows: 'fixed', tells: 'minute' } },
    });
    const { petApi } = world;
    const redis = createRedis({ seed: 6 });
    const replicas = await startReplicas(world, redis, 3, { plan: 'pro', upstreamTimeoutMs: 5_000 });
    await world.until(Promise.all(replicas.map((petql) => petql.create(5))));
    petApi.log.length = 0;
    petApi.fault = mixed(
      [
        [refused, tooMany(1)],
        [failed, fails()],
        [silent, HANGS],
      ],
      7,
    );
    await world.saturate(replicas, 10 * MINUTE_MS, { kind, clients: 5, batch: 10 });

    const first = petApi.log.find(({ status }) => status === 429);
    const knownAtMs = first?.answeredAtMs ?? Infinity;
    const later = petApi.log.filter(({ sentAtMs }) => sentAtMs > knownAtMs);
    expect(first).toBeDefined();
    expect(later.length).toBeLessThanOrEqual(maxMore);
  },
);
