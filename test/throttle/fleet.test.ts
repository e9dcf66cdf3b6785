import { afterEach, expect, test, vi } from 'vitest';
import { between, createRandom } from '../prove/random.ts';
import { createFleetSimulation } from './fleet-simulation.ts';
import type { FleetSimulation, RedisHarm } from './fleet-simulation.ts';
import type { Arrival, StrictPlanOptions } from './strict-plan.ts';

const START_MS = Date.UTC(2026, 10, 21, 12, 0, 13);
const SEEDS = Number(process.env['FUZZ_RUNS'] ?? 4);
const REPLICAS = 3;
const SECONDS = 240;
const STEP_MS = 250;
const HARMS: readonly RedisHarm[] = ['refuses', 'hangs', { slowMs: 300 }];
/** What was under way together is refused together, and a moment later by the clock of another replica. */
const TOGETHER_MS = 1_000;

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

interface Troubles {
  readonly away: boolean;
  readonly kills: boolean;
}

interface History {
  readonly arrivals: readonly Arrival[];
  /** How often something was done to Redis, and how often a process began anew. */
  readonly harms: number;
  readonly starts: number;
}

/** Four minutes in which each replica is busy now and then, and has much to ask at once. */
async function live(seed: number, plan: StrictPlanOptions, troubles: Troubles): Promise<History> {
  const random = createRandom(seed);
  vi.useRealTimers();
  vi.useFakeTimers({ now: START_MS });
  vi.spyOn(Math, 'random').mockImplementation(random);
  const fleet = createFleetSimulation({ replicas: REPLICAS, plan, random, callMs: between(random, 10, 200) });
  const inMs = (fromS: number, toS: number) => between(random, fromS * 1_000, toS * 1_000);
  const replicas = Array.from({ length: REPLICAS }, () => ({ restMs: 0, goneUntilMs: 0 }));
  let harmAtMs = troubles.away ? inMs(5, 70) : Infinity;
  let wellAtMs = Infinity;
  let killAtMs = troubles.kills ? inMs(5, 100) : Infinity;
  let harms = 0;
  let starts = 0;

  await everyStep((nowMs) => {
    if (nowMs >= harmAtMs) {
      fleet.harm(HARMS[between(random, 0, 2)] as RedisHarm);
      harms += 1;
      [harmAtMs, wellAtMs] = [Infinity, nowMs + inMs(1, 40)];
    }
    if (nowMs >= wellAtMs) {
      fleet.harm('none');
      if (troubles.kills) fleet.harm('emptied');
      [harmAtMs, wellAtMs] = [nowMs + inMs(5, 80), Infinity];
    }
    if (nowMs >= killAtMs) {
      const killed = between(random, 0, REPLICAS - 1);
      fleet.kill(killed);
      Object.assign(replicas[killed] ?? {}, { goneUntilMs: nowMs + inMs(1, 15) });
      killAtMs = nowMs + inMs(16, 60);
    }
    for (const [replica, state] of replicas.entries()) {
      if (state.goneUntilMs > 0 && nowMs >= state.goneUntilMs) {
        fleet.start(replica);
        starts += 1;
        state.goneUntilMs = 0;
      }
      if (nowMs < state.restMs) continue;
      if (random() < 0.25) state.restMs = nowMs + inMs(1, 20);
      else fleet.ask(replica, between(random, 1, Math.ceil(plan.perMinute / 20)), between(random, 0, 3_000));
    }
  });
  await fleet.close();
  return { arrivals: fleet.upstream.arrivals, harms, starts };
}

async function everyStep(step: (nowMs: number) => void): Promise<void> {
  for (let nowMs = 0; nowMs < SECONDS * 1_000; nowMs += STEP_MS) {
    step(nowMs);
    await vi.advanceTimersByTimeAsync(STEP_MS);
  }
}

/** The 429s, those apart that came together. */
function refusals({ arrivals }: Pick<History, 'arrivals'>): number[][] {
  const together: number[][] = [];
  for (const { atMs, status } of arrivals) {
    if (status === 200) continue;
    const last = together.at(-1);
    if (last && atMs - (last[0] ?? 0) < TOGETHER_MS) last.push(atMs);
    else together.push([atMs]);
  }
  return together;
}

const CASES = [60, 300].flatMap((perMinute) =>
  (['fixed', 'sliding'] as const).map((windows) => ({ perMinute, windows })),
);

test.each(CASES)(
  'replicas that Redis leaves alone now and then keep to $perMinute a minute in $windows windows, and use most of it',
  async ({ perMinute, windows }) => {
    let quiet = 0;
    let used = 0;
    let overruns = 0;
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const plan = { perMinute, perDay: perMinute * 30, windows, tells: 'minute' } as const;
      quiet += (await live(seed, plan, { away: false, kills: false })).arrivals.length;
      const history = await live(seed, plan, { away: true, kills: false });
      used += history.arrivals.length;
      const together = refusals(history);
      expect(together.length, `seed ${seed}`).toBeLessThanOrEqual(history.harms);
      for (const refused of together) expect(refused.length, `seed ${seed}`).toBeLessThanOrEqual(REPLICAS);
      overruns += together.length;
    }
    expect(overruns).toBeLessThanOrEqual(SEEDS / 4);
    expect(used / quiet).toBeGreaterThan(0.8);
  },
);

// Who begins while Redis is away, or has lost what it held, can only find out by a call that a window is used up.
test.each(CASES)(
  'replicas that are killed as well overrun $perMinute a minute in $windows windows by a call for each harm, at most',
  async ({ perMinute, windows }) => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const plan = { perMinute, perDay: perMinute * 30, windows, tells: 'minute' } as const;
      const history = await live(seed, plan, { away: true, kills: true });
      const together = refusals(history);
      expect(together.length, `seed ${seed}`).toBeLessThanOrEqual(history.harms + history.starts);
      // Two at a time are under way where a replica is alone.
      for (const refused of together) expect(refused.length, `seed ${seed}`).toBeLessThanOrEqual(2 * REPLICAS);
    }
  },
);

const TEN: Readonly<Record<string, (fleet: FleetSimulation, second: number) => void>> = {
  'that are restarted one after the other': (fleet, second) => {
    if (second % 12 === 0 && second < 120) fleet.kill(second / 12);
    if (second % 12 === 2 && second < 120) fleet.start((second - 2) / 12);
  },
  'that lose Redis for three minutes': (fleet, second) => {
    if (second === 20) fleet.harm('hangs');
    if (second === 200) fleet.harm('none');
  },
  'that lose Redis for two seconds again and again': (fleet, second) => {
    if (second % 7 === 5) fleet.harm('refuses');
    if (second % 7 === 0) fleet.harm('none');
  },
  'beside a slow Redis': (fleet, second) => {
    if (second === 20) fleet.harm({ slowMs: 400 });
  },
};

test.each(
  Object.entries(TEN).flatMap(([what, each]) => [
    { what, each, windows: 'fixed' as const },
    { what, each, windows: 'sliding' as const },
  ]),
)(
  'ten replicas $what meet one 429 at most in $windows windows, and use most of the plan',
  async ({ each, windows }) => {
    vi.useFakeTimers({ now: START_MS });
    const random = createRandom(2);
    vi.spyOn(Math, 'random').mockImplementation(random);
    const plan = { perMinute: 300, perDay: 100_000, windows, tells: 'minute' } as const;
    const fleet = createFleetSimulation({ replicas: 10, plan, random, callMs: 100 });
    await everyStep((nowMs) => {
      if (nowMs % 1_000 === 0) each(fleet, nowMs / 1_000);
      for (let replica = 0; replica < 10; replica += 1) {
        if (random() < 0.5) fleet.ask(replica, between(random, 1, 10), 3_000);
      }
    });
    await fleet.close();
    const { arrivals } = fleet.upstream;
    expect(refusals({ arrivals }).flat().length).toBeLessThanOrEqual(1);
    expect(arrivals.length).toBeGreaterThan(((plan.perMinute * SECONDS) / 60) * 0.9);
  },
);

test.each(['fixed', 'sliding'] as const)(
  'replicas whose Redis is emptied remember what no header tells of, in %s windows',
  async (windows) => {
    vi.useFakeTimers({ now: START_MS });
    const random = createRandom(3);
    const plan = { perMinute: 300, perDay: 100_000, windows, tells: 'day' } as const;
    const fleet = createFleetSimulation({ replicas: REPLICAS, plan, random, callMs: 100 });
    await everyStep((nowMs) => {
      // In the midst of the calls of a minute.
      if (nowMs === 3_000 || nowMs === 153_000) fleet.harm('emptied');
      for (let replica = 0; replica < REPLICAS; replica += 1) fleet.ask(replica, between(random, 1, 10), 3_000);
    });
    await fleet.close();
    const { arrivals } = fleet.upstream;
    // What was granted last, not every replica knows.
    expect(refusals({ arrivals }).flat().length).toBeLessThanOrEqual(1);
    expect(arrivals.length).toBeGreaterThan(((plan.perMinute * SECONDS) / 60) * 0.7);
  },
);

test.each(
  (['day', 'changing'] as const).flatMap((tells) =>
    (['refuses', 'hangs', 'emptied'] as const).map((harm) => ({ tells, harm })),
  ),
)('replicas begin a new day anew where Redis was harmed across its reset: $harm, told of $tells', async (given) => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 23, 58, 13) });
  const midnightMs = Date.UTC(2026, 10, 22);
  const random = createRandom(4);
  const plan = { perMinute: 60, perDay: 100, windows: 'fixed', tells: given.tells } as const;
  const fleet = createFleetSimulation({ replicas: REPLICAS, plan, random, callMs: 100 });
  await everyStep((nowMs) => {
    if (nowMs === 90_000) fleet.harm(given.harm);
    if (nowMs === 130_000) fleet.harm('none');
    for (let replica = 0; replica < REPLICAS; replica += 1) {
      if (random() < 0.5) fleet.ask(replica, between(random, 1, 10), 3_000);
    }
  });
  await fleet.close();
  const { arrivals } = fleet.upstream;
  const [before, after] = [
    arrivals.filter(({ atMs }) => atMs < midnightMs),
    arrivals.filter(({ atMs }) => atMs >= midnightMs),
  ];
  expect(before.length).toBeGreaterThan(70);
  expect(after.length).toBeGreaterThan(70);
  expect(refusals({ arrivals }).flat().length).toBeLessThanOrEqual(2);
});

test('what was refused while Redis was away is served as soon as it is back', async () => {
  vi.useFakeTimers({ now: START_MS });
  const plan = { perMinute: 60, perDay: 1_000, windows: 'fixed', tells: 'minute' } as const;
  const fleet = createFleetSimulation({ replicas: 2, plan, random: createRandom(1), callMs: 20 });
  const elapse = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  await elapse(1_000);
  fleet.ask(0, 3, 100);
  await elapse(3_000);
  fleet.harm('refuses');
  await elapse(1_500);
  // Of this window others may have used what is left.
  fleet.ask(0, 2, 100);
  await elapse(500);
  expect(fleet.upstream.arrivals).toHaveLength(3);
  fleet.harm('none');
  await elapse(2_000);
  fleet.ask(0, 5, 100);
  await elapse(500);
  expect(fleet.upstream.arrivals).toHaveLength(8);
  await fleet.close();
});
