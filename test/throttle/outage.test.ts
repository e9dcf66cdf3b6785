import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createRandom } from '../prove/random.ts';
import { createFleetSimulation } from './fleet-simulation.ts';
import type { FleetSimulation } from './fleet-simulation.ts';

// Two replicas and an outage of seconds. What one of them had spent alone, the other spent once more as soon as Redis was
// back: as many 429s at once, and a ban.

const MINUTE_MS = Date.UTC(2026, 10, 21, 12);
const BUSY = 0;
const OTHER = 1;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const elapse = (ms: number) => vi.advanceTimersByTimeAsync(ms);

const CASES = (['refuses', 'hangs'] as const).flatMap((harm) =>
  (['fixed', 'sliding'] as const).flatMap((windows) => [60, 300].map((perMinute) => ({ harm, windows, perMinute }))),
);
type Case = (typeof CASES)[number];

function startFleet({ windows, perMinute }: Case, startMs: number): FleetSimulation {
  vi.setSystemTime(startMs);
  const random = createRandom(5);
  vi.spyOn(Math, 'random').mockImplementation(random);
  const plan = { perMinute, perDay: perMinute * 100, windows, tells: 'minute', banAt: 3 } as const;
  return createFleetSimulation({ replicas: 2, plan, random, callMs: 200 });
}

/** Much is asked of the other one for so long; answers how many calls it makes. */
async function burst({ ask, upstream }: FleetSimulation, perMinute: number, seconds: number): Promise<number> {
  const before = upstream.arrivals.length;
  for (let second = 0; second < seconds; second += 1) {
    ask(OTHER, perMinute, 900);
    await elapse(1_000);
  }
  return upstream.arrivals.length - before;
}

/** Redis is back; a while later, much is asked of the one that has known the window before. */
async function expectNoRefusal(fleet: FleetSimulation, perMinute: number, afterMs: number): Promise<void> {
  fleet.harm('none');
  await elapse(afterMs);
  fleet.ask(BUSY, perMinute, 3_000);
  await elapse(8_000);
  await fleet.close();
  const { arrivals } = fleet.upstream;
  expect(arrivals.filter(({ status }) => status !== 200)).toEqual([]);
  // What is asked for before it is known to be back is refused.
  expect(arrivals.length).toBeGreaterThan(afterMs < 1_000 ? 20 : perMinute * 0.7);
}

test.each(CASES.flatMap((given) => [300, 1_000, 2_500].map((afterMs) => ({ ...given, afterMs }))))(
  'what is spent alone of a window that Redis holds for open is not spent again $afterMs ms after it is back: $harm, $perMinute, $windows',
  async ({ afterMs, ...given }) => {
    for (const heardOf of [false, true]) {
      const fleet = startFleet(given, MINUTE_MS - 58_000);
      // Of the minute before: of this one it knows nothing either way.
      if (heardOf) fleet.ask(OTHER, 1, 3_000);
      await elapse(63_000);
      fleet.ask(BUSY, 1, 3_000);
      await elapse(3_000);
      fleet.harm(given.harm);
      await elapse(2_000);
      expect(await burst(fleet, given.perMinute, 4)).toBeGreaterThan(20);
      await expectNoRefusal(fleet, given.perMinute, afterMs);
    }
  },
);

test.each(CASES.flatMap((given) => [500, 2_500].map((afterMs) => ({ ...given, afterMs }))))(
  'an answer that Redis hears of half a minute late opens no window by what was left then, $afterMs ms after it is back: $harm, $perMinute, $windows',
  async ({ afterMs, ...given }) => {
    for (const isProbe of [false, true]) {
      const fleet = startFleet(given, MINUTE_MS - 47_000);
      await elapse(10_000);
      if (!isProbe) fleet.ask(BUSY, 1, 3_000);
      await elapse(17_000);
      fleet.ask(BUSY, 1, 3_000);
      await elapse(10);
      fleet.harm(given.harm);
      await elapse(23_000);
      expect(await burst(fleet, given.perMinute, 10)).toBeGreaterThan(20);
      await expectNoRefusal(fleet, given.perMinute, afterMs);
    }
  },
);
