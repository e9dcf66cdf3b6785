import { describe, expect, test } from 'vitest';
import { chooseCases } from '../support/seed.ts';
import { PLANS } from '../../src/common/plan.ts';
import { inTurn, tooMany } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule, HeaderRecord } from '../support/pet-api/fault.ts';
import type { StrictPlanOptions, ToldHeaders } from '../support/pet-api/strict-plan.ts';
import { HOUR_MS, MINUTE_MS, createWorld, createdIn } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

/*
 * Upstreams within pet-api.md that public reports tell of, and what petql makes of them: a mistake costs minutes, and a 429
 * is met once.
 */

const FREE: StrictPlanOptions = { ...PLANS.free, windows: 'fixed', tells: 'minute' };

function createOddWorld(key: Partial<StrictPlanOptions> = {}, startsAt = '2026-11-21T09:41:07Z'): Promise<World> {
  return createWorld({ seed: 81, startsAt, keys: { key: { ...FREE, ...key } } });
}

/** Calls that the upstream served. */
function servedBy({ petApi }: World): number {
  return petApi.log.filter(({ status }) => status === 201).length;
}

/** 429s: calls that were sent before the first of them was answered are one. */
function refusalsOf({ petApi }: World): number {
  let knownAtMs = -Infinity;
  let refusals = 0;
  for (const { status, sentAtMs, answeredAtMs } of petApi.log) {
    if (status !== 429 || sentAtMs <= knownAtMs) continue;
    knownAtMs = answeredAtMs ?? Infinity;
    refusals += 1;
  }
  return refusals;
}

/** Another program has used so many calls of the day, a minute's at a time until now. */
function useDay({ nowMs, petApi }: World, calls: number): void {
  const minutes = Math.ceil(calls / PLANS.free.perMinute);
  for (let minute = 0; minute < minutes; minute += 1) {
    const count = Math.min(PLANS.free.perMinute, calls - minute * PLANS.free.perMinute);
    petApi.countOthers('key', count, nowMs - (minutes - minute) * MINUTE_MS);
  }
}

/** Adds a few pets each minute, as far as petql lets it. */
async function createEachMinute(world: World, petql: Petql, minutes: number, pets: number): Promise<number> {
  let created = 0;
  for (let minute = 0; minute < minutes; minute += 1) {
    created += createdIn(await world.until(petql.create(pets, { waitMs: 1_000 })));
    await world.pass(MINUTE_MS - 1_500);
  }
  return created;
}

describe('what only a header knows is given back at its reset', () => {
  const DAY_ENDS_MS = 17 * MINUTE_MS + 23_000;

  test.each([
    ['the day is told', 'day'],
    ['the minute is told from then on', 'minute'],
    ['the tighter window is told', 'changing'],
  ] as const)('where another program has used the day before it ended, and %s', async (_title, tells) => {
    let isFirst = true;
    const options = { dayEndsMs: DAY_ENDS_MS, tells: () => (isFirst ? 'day' : tells) } as const;
    await using world = await createOddWorld(options, '2026-11-21T00:10:07Z');
    useDay(world, 980);
    const petql = await world.start({ plan: 'free' });
    await world.until(petql.create(1));
    isFirst = false;
    await world.pass(9 * MINUTE_MS);
    const created = await createEachMinute(world, petql, 60, 5);
    expect(created).toBeGreaterThanOrEqual(295);
    expect(refusalsOf(world)).toBe(0);
  });

  test.each([
    ['in India', 18.5],
    ['in Nepal', 18.25],
    ['on the hour', 18],
  ])('where days end %s', async (_title, hour) => {
    await using world = await createOddWorld(
      { dayEndsMs: hour * HOUR_MS, tells: 'changing' },
      new Date(Date.UTC(2026, 10, 21) + (hour - 0.5) * HOUR_MS).toISOString(),
    );
    useDay(world, 980);
    const petql = await world.start({ plan: 'free' });
    await createEachMinute(world, petql, 31, 2);
    let created = 0;
    for (let minutes = 0; minutes < 23 * 60; minutes += 60) created += await createEachMinute(world, petql, 40, 1);
    expect(created).toBeGreaterThanOrEqual(0.95 * 23 * 40);
    // Only a header says that the day is used: after ten minutes, one call asks.
    expect(refusalsOf(world)).toBeLessThanOrEqual(1);
  });

  test.each<[string, Fault]>([
    ['a 502', { status: 502, body: '<html>Bad gateway</html>' }],
    ['a page with 200', { body: '<html>Sign in</html>' }],
    ['a 503 without a body', { status: 503, body: '' }],
  ])('and nothing is learned from the headers of a proxy: %s', async (_title, fault) => {
    await using world = await createOddWorld();
    const petql = await world.start({ plan: 'free' });
    await world.until(petql.create(3));
    const resetS = Math.floor(world.nowMs / 1_000) + 3_600;
    world.petApi.fault = { ...fault, told: { limit: 5_000, remaining: 0, reset: resetS } };
    await world.until(petql.create(1));
    world.petApi.fault = undefined;
    expect(await createEachMinute(world, petql, 10, 5)).toBe(50);
    expect((await petql.rateLimit()).day).toMatchObject({ limit: 1_000 });
  });
});

describe('of calls that overtake each other, the later sent one tells what is left', () => {
  test.each([
    ['by 0.9 s', 900],
    ['by 4 s', 4_000],
    ['by 0.1 s', 600],
  ])('%s', async (_title, delayMs) => {
    await using world = await createOddWorld({}, '2026-11-21T09:41:01Z');
    const petql = await world.start({ plan: 'free', upstreamTimeoutMs: 10_000 });
    world.petApi.fault = inTurn({ delayMs }, undefined);
    const first = petql.create(1);
    await world.pass(300);
    world.petApi.countOthers('key', 53);
    await world.until(Promise.all([petql.create(1), first]));
    world.petApi.fault = undefined;
    await world.saturate([petql], 20_000);
    expect(servedBy(world)).toBeLessThanOrEqual(7);
    expect(refusalsOf(world)).toBe(0);
  });
});

describe('a minute whose reset is told as something else is a minute', () => {
  const RESETS: [string, (reset: string, nowMs: number) => string][] = [
    ['a delta in milliseconds', (reset, nowMs) => String(Number(reset) * 1_000 - nowMs)],
    ['local time in India', (reset) => String(Number(reset) + 5.5 * 3_600)],
    ['local time in New York', (reset) => String(Number(reset) - 5 * 3_600)],
    ['a delta in seconds', (reset, nowMs) => String(Math.ceil(Number(reset) - nowMs / 1_000))],
  ];

  test.each(RESETS)('%s', async (_title, write) => {
    await using world = await createOddWorld({ windows: 'sliding', days: 'fixed' });
    world.petApi.fault = { headers: (told) => withReset(told, (reset) => write(reset, world.nowMs)) };
    const petql = await world.start({ plan: 'free' });
    await world.saturate([petql], 10 * MINUTE_MS);
    expect(servedBy(world)).toBeGreaterThanOrEqual(0.9 * 10 * PLANS.free.perMinute);
    expect(refusalsOf(world)).toBeLessThanOrEqual(1);
  });

  test('and a Retry-After is believed beside it', async () => {
    await using world = await createOddWorld();
    world.petApi.fault = { headers: (told) => withReset(told, (reset) => String(Number(reset) + 5.5 * 3_600)) };
    const petql = await world.start({ plan: 'free' });
    await world.until(petql.create(2));
    const { fault } = world.petApi;
    world.petApi.fault = [inTurn(tooMany(20), fault), fault];
    await world.until(petql.create(1, { waitMs: 0 }));
    world.petApi.fault = fault;
    await world.pass(22_000);
    expect(createdIn(await world.until(petql.create(1, { waitMs: 1_000 })))).toBe(1);
  });

  test.each([
    ['30 s', -30_000],
    ['60 s', -60_000],
    ['an hour', -HOUR_MS],
  ])("petql's clock is behind by %s, and no Date header tells it", async (_title, aheadMs) => {
    await using world = await createOddWorld({ sendsDate: false });
    const petql = await world.start({ plan: 'free', aheadMs });
    await world.saturate([petql], 10 * MINUTE_MS);
    expect(servedBy(world)).toBeGreaterThanOrEqual(0.9 * 10 * PLANS.free.perMinute);
    expect(refusalsOf(world)).toBe(0);
  });
});

describe('a custom plan is found out under auto', () => {
  const BEGINNINGS: [name: string, others: number, fault: Fault | undefined][] = [
    ['five calls of others in its first minute', 5, undefined],
    ['nothing odd', 0, undefined],
    ['a 429 in its first minute', 0, tooMany(5)],
  ];
  test.each(chooseCases(BEGINNINGS, 3))('with %s', async (_title, others, fault) => {
    await using world = await createOddWorld({ perMinute: 120, perDay: 5_000 });
    const petql = await world.start();
    await world.until(petql.create(1));
    world.petApi.countOthers('key', others);
    world.petApi.fault = fault && inTurn(fault);
    await world.until(petql.create(1, { waitMs: 0 }));
    world.petApi.fault = undefined;
    await world.saturate([petql], HOUR_MS);
    expect(servedBy(world)).toBeGreaterThanOrEqual(0.9 * 5_000);
    expect(refusalsOf(world)).toBeLessThanOrEqual(fault ? 2 : 1);
  });
});

describe('headers that are not exact cost one 429 an hour, not one a minute', () => {
  /** The headers as they were so long ago. */
  const lateBy = (lateMs: number): FaultRule => {
    const before: [atMs: number, told: ToldHeaders][] = [];
    return ({ atMs }) => ({
      told(now) {
        before.push([atMs, now]);
        return before.findLast(([toldAtMs]) => toldAtMs <= atMs - lateMs)?.[1] ?? now;
      },
    });
  };
  const offBy = (calls: number): FaultRule => ({
    told: ({ remaining = 0, ...told }) => ({ ...told, remaining: Math.max(0, remaining + calls) }),
  });
  /** Three servers, each of which counts its own calls. */
  const nodes = (): FaultRule => {
    const used = [0, 0, 0];
    let minute = 0;
    return ({ number, atMs }) => ({
      told({ limit = 0, ...told }) {
        if (Math.floor(atMs / MINUTE_MS) !== minute) used.fill(0);
        minute = Math.floor(atMs / MINUTE_MS);
        const node = number % used.length;
        used[node] = (used[node] ?? 0) + 1;
        return { ...told, limit, remaining: limit - used[node] };
      },
    });
  };

  const INEXACT: [string, FaultRule, Partial<StrictPlanOptions>][] = [
    ['0.2 s old, Free', lateBy(200), {}],
    ['0.2 s old, Pro', lateBy(200), PLANS.pro],
    ['3 s old, Free', lateBy(3_000), {}],
    ['one too many', offBy(1), {}],
    ['one too few', offBy(-1), {}],
    ['of three servers', nodes(), {}],
  ];
  test.each(chooseCases(INEXACT, 2))('%s', async (_title, fault, plan) => {
    await using world = await createOddWorld(plan);
    world.petApi.fault = fault;
    const petql = await world.start({ plan: plan.perMinute === PLANS.pro.perMinute ? 'pro' : 'free' });
    await world.saturate([petql], 15 * MINUTE_MS);
    expect(refusalsOf(world)).toBeLessThanOrEqual(1);
    expect(servedBy(world)).toBeGreaterThanOrEqual(0.85 * 15 * (plan.perMinute ?? PLANS.free.perMinute));
  });

  const HIDDEN: [name: string, calls: number, lengthMs: number][] = [
    ['three in half a second', 3, 500],
    ['five a second', 5, 1_000],
    ['ten a second', 10, 1_000],
  ];
  test.each(chooseCases(HIDDEN, 3))('a limit that nothing tells, %s, is learned', async (_title, calls, lengthMs) => {
    await using world = await createOddWorld(PLANS.pro);
    const served: number[] = [];
    world.petApi.fault = ({ atMs }) => {
      if (served.filter((servedAtMs) => servedAtMs > atMs - lengthMs).length >= calls) return tooMany(1);
      served.push(atMs);
      return undefined;
    };
    const petql = await world.start({ plan: 'pro' });
    await world.saturate([petql], 5 * MINUTE_MS, { clients: 30 });
    expect(world.petApi.log.filter(({ status }) => status === 429).length).toBeLessThanOrEqual(30);
    const allowed = Math.min(PLANS.pro.perMinute, (calls * MINUTE_MS) / lengthMs);
    expect(servedBy(world)).toBeGreaterThanOrEqual(0.6 * 5 * allowed);
  });
});

describe('more calls remaining than the limit allows are no count', () => {
  /** Such a `remaining`; with it, no reset: no clock tells then what the header counts. */
  const IMPOSSIBLE: Fault = { told: (told) => ({ ...told, remaining: 999_999_999, reset: undefined }) };

  test('that would say that a reset has freed everything', async () => {
    await using world = await createOddWorld({ perMinute: 21, windows: 'sliding' }, '2026-11-21T09:41:07Z');
    // Resets are told in the first minute only, and the day is not at its end.
    const startMs = world.nowMs;
    world.petApi.fault = ({ atMs }) => (atMs < startMs + MINUTE_MS ? undefined : IMPOSSIBLE);
    const petql = await world.start({ plan: '21/1000' });
    await world.until(petql.create(4));
    await world.pass(1_500);
    await world.saturate([petql], 4 * MINUTE_MS);
    expect(refusalsOf(world)).toBe(0);
    expect(servedBy(world)).toBeGreaterThanOrEqual(0.9 * 4 * 21);
  });

  test.each<[string, StrictPlanOptions]>([
    ['minute', FREE],
    ['day', { perMinute: 1_000, perDay: 60, windows: 'fixed', tells: 'day' }],
  ])('that would say that nobody else uses the key in its %s', async (_title, plan) => {
    await using world = await createOddWorld(plan);
    const petql = await world.start({ plan: `${plan.perMinute}/${plan.perDay}` });
    world.petApi.countOthers('key', 50);
    await world.until(petql.create(1));
    world.petApi.fault = IMPOSSIBLE;
    await world.until(petql.create(1));
    await world.until(petql.create(20, { waitMs: 20_000 }));
    expect(refusalsOf(world)).toBe(0);
  });

  test('while their limit is one', async () => {
    await using world = await createOddWorld(PLANS.pro);
    world.petApi.fault = IMPOSSIBLE;
    const petql = await world.start();
    await world.until(petql.create(1));
    expect((await petql.rateLimit()).minute).toMatchObject({ limit: PLANS.pro.perMinute, used: 1 });
  });
});

describe('Retry-After is read as far as it can be', () => {
  const asctime = (ms: number) => {
    const [, day, date, month, year, time] =
      /^(\w+), (\d+) (\w+) (\d+) ([\d:]+)/.exec(new Date(ms).toUTCString()) ?? [];
    return `${day} ${month} ${String(Number(date)).padStart(2)} ${time} ${year}`;
  };

  test.each<[string, (nowMs: number) => string | string[], number]>([
    ['two lines', () => ['60', '60'], 60],
    ['two values in one line', () => '60, 60', 60],
    ['two that differ', () => '5, 60', 60],
    ['an asctime date', (nowMs) => asctime(nowMs + 120_000), 120],
    ['a date of RFC 1123', (nowMs) => new Date(nowMs + 120_000).toUTCString(), 120],
    ['a timestamp', (nowMs) => String(Math.ceil(nowMs / 1_000) + 60), 60],
    ['a timestamp in milliseconds', (nowMs) => String(nowMs + 60_000), 60],
    ['120s', () => '120s', 0],
    ['PT120S', () => 'PT120S', 0],
    ['a date of ISO 8601', (nowMs) => new Date(nowMs + 120_000).toISOString(), 0],
    ['less than nothing', () => '-5', 0],
  ])('%s', async (_title, write, seconds) => {
    const zone = process.env['TZ'];
    process.env['TZ'] = 'America/New_York';
    try {
      await using world = await createOddWorld({ tells: 'nothing' });
      const petql = await world.start({ plan: 'free' });
      world.petApi.fault = ({ atMs }) => ({ status: 429, headers: { 'retry-after': write(atMs) } });
      await world.until(petql.create(1, { waitMs: 0 }));
      world.petApi.fault = undefined;
      const startMs = world.nowMs;
      await world.until(petql.create(1, { waitMs: 500_000 }));
      const waitedS = ((world.petApi.log[1]?.atMs ?? Infinity) - startMs) / 1_000;
      // What cannot be read is the shortest pause.
      expect(waitedS).toBeGreaterThanOrEqual(Math.max(4, seconds - 1));
      expect(waitedS).toBeLessThanOrEqual(Math.max(8, seconds + 3));
    } finally {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
    }
  });
});

function withReset(headers: HeaderRecord, write: (reset: string) => string): HeaderRecord {
  const reset = headers['x-ratelimit-reset'];
  return typeof reset === 'string' ? { ...headers, 'x-ratelimit-reset': write(reset) } : headers;
}
