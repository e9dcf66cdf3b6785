import { expect, test } from 'vitest';
import type { Int64 } from '../../src/int64.ts';
import type { UpstreamAnswer } from '../../src/upstream/pet-api.ts';
import { HUNDRED, answered, startCallers } from './start-callers.ts';

const PLAN = { perMinute: 320, perDay: 10_000 };
const LATE: UpstreamAnswer<never> = {
  outcome: { kind: 'no-answer', reason: 'timeout' },
  sent: true,
  rateLimit: undefined,
};

const ids = (from: number, count: number) => Array.from({ length: count }, (_, index) => String(from + index) as Int64);

// Of the reads that wait, a hundred have asked the throttle for a place, and those alone were counted: a dry run said of calls
// that they fit, and most of them were refused.
test('all calls that wait are counted, reads and writes, and what comes is priced behind them', async () => {
  const calls: (() => void)[] = [];
  const answer = () => new Promise<UpstreamAnswer<never>>((resolve) => calls.push(() => resolve(LATE)));
  const { callers, ask, freshness } = startCallers(
    { listPets: () => Promise.resolve(answered(HUNDRED, PLAN)), getPet: answer, createPet: answer },
    PLAN,
  );
  const caller = callers.withKey('key');
  await ask('key').list(undefined, 1);

  const gone = new AbortController();
  const pets = ask('key', gone.signal);
  // Each twice, for a call.
  const asked = [...ids(1_000, 300), ...ids(1_000, 300)];
  const reads = Promise.allSettled(asked.map(async (id) => pets.byId(id)));
  await expect.poll(() => calls.length).toBe(50);
  const write = ask('key', gone.signal)
    .create({ name: 'Momo', categoryId: '3' as Int64, status: undefined })
    .catch(() => undefined);
  await expect.poll(() => caller.budget.latest()?.queued).toBe(251);
  expect((await caller.budget.read()).queued).toBe(251);
  expect(callers.views().map(({ budget }) => budget.queued)).toEqual([251]);

  const price = (count: number) => {
    const demands = ids(5_000, count).map((id) => ({ kind: 'animal', id }) as const);
    return caller.fit(caller.worstCase(demands, freshness));
  };
  // At most 320 are left, and 269 at least.
  expect(await price(15)).toMatchObject({ waitMs: 0 });
  expect(await price(100)).toMatchObject({ waitMs: expect.any(Number), window: 'MINUTE' });
  // As long as it would be in truth: 251 before them, and the last one in the third minute at the earliest.
  expect((await price(700)).waitMs).toBeGreaterThan(120_000);
  expect(await caller.fit(0)).toMatchObject({ waitMs: 0 });

  gone.abort();
  await Promise.all([reads, write]);
  expect(caller.budget.latest()?.queued).toBe(0);
  expect(calls).toHaveLength(50);
  for (const end of calls) end();
  await callers.close();
});
