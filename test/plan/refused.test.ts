import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { brokenPromises } from '../support/check.ts';
import { HANGS } from '../support/pet-api/fault.ts';
import type { ArrivingCall, Fault } from '../support/pet-api/fault.ts';
import type { Tells } from '../support/pet-api/strict-plan.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, createWorld, createdIn } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const STORM_MS = 10 * MINUTE_MS;
const START = Date.UTC(2026, 10, 21, 9, 41, 7);

function createProWorld(tells: Tells = 'minute', latencyMs?: readonly [from: number, to: number]): Promise<World> {
  const plan = { ...PLANS.pro, windows: 'fixed', tells } as const;
  const startsAt = new Date(START).toISOString();
  return createWorld({ seed: 11, startsAt, keys: { key: plan, other: plan }, ...(latencyMs && { latencyMs }) });
}

/** A fault of the first call that arrives after a moment. */
function once(afterMs: number, fault: Fault) {
  let done = false;
  return ({ atMs }: ArrivingCall) => {
    if (done || atMs < afterMs) return undefined;
    done = true;
    return fault;
  };
}

const refusedFor = (retryAfter: string | undefined): Fault => ({ status: 429, headers: { 'retry-after': retryAfter } });

describe('after a 429', () => {
  test.each([
    ['seconds', 'minute', () => '30'],
    ['a part of a second', 'nothing', () => '29.5'],
    ['a date', 'changing', (nowMs: number) => new Date(nowMs + 30_000).toUTCString()],
  ] as const)(
    'nothing is sent until its Retry-After is over, in %s, and then one call alone',
    async (_form, tells, retryAfter) => {
      await using world = await createProWorld(tells);
      const refusedAtMs = START + 300;
      world.petApi.fault = once(refusedAtMs, refusedFor(retryAfter(refusedAtMs)));
      const petql = await world.start({ plan: 'pro' });
      // More than are sent at a time, so that some wait with a permit.
      await world.saturate([petql], MINUTE_MS, { clients: 80, batch: 2 });
      expect(brokenPromises(world.history())).toEqual([]);
      const { log } = world.petApi;
      const refused = log.find(({ status }) => status === 429);
      const [probe, next] = log.filter(({ sentAtMs }) => sentAtMs > (refused?.answeredAtMs ?? Infinity));
      expect(probe?.sentAtMs).toBeLessThan(refusedAtMs + 34_000);
      expect(next?.sentAtMs).toBeGreaterThanOrEqual(probe?.answeredAtMs ?? Infinity);
      expect(log.length).toBeGreaterThanOrEqual(PLANS.pro.perMinute);
    },
  );

  test('nothing is sent that got its permit just before', async () => {
    // Of the calls of one moment the twentieth is refused at once, while fifty others have a permit and are not sent.
    await using world = await createProWorld('minute', [0, 0]);
    world.petApi.fault = ({ number }) => (number === 20 ? refusedFor('30') : undefined);
    const petql = await world.start({ plan: 'pro' });
    await world.saturate([petql], MINUTE_MS / 4, { clients: 80, batch: 2 });
    expect(world.petApi.log.map(({ status }) => status).slice(18)).toEqual([201, 429]);
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test.each([
    ['no Retry-After', [undefined]],
    ['a Retry-After', ['5']],
    ['a second one after it', [undefined, '1']],
  ])('a create that met it is sent again before those that came later, with %s', async (_case, retryAfters) => {
    await using world = await createProWorld('minute', [50, 50]);
    world.petApi.fault = ({ number }) =>
      number <= retryAfters.length ? refusedFor(retryAfters[number - 1]) : undefined;
    const petql = await world.start({ plan: 'pro' });
    const creates = [];
    for (const aheadMs of [20, 1, 0]) {
      creates.push(petql.create(1, { waitMs: MINUTE_MS }));
      await world.pass(aheadMs);
    }
    await world.until(Promise.all(creates));
    const names = world.petApi.log.filter(({ status }) => status === 201).map(({ name }) => name);
    expect(names).toEqual(['pet 1', 'pet 2', 'pet 3']);
  });

  test('another key goes on', async () => {
    await using world = await createProWorld();
    world.petApi.fault = ({ key }) => (key === 'key' ? refusedFor('60') : undefined);
    const petql = await world.start({ plan: 'pro' });
    await world.until(petql.create(1, { waitMs: 0 }));
    expect(createdIn(await world.until(petql.create(5, { key: 'other', waitMs: 5_000 })))).toBe(5);
    expect(brokenPromises(world.history())).toEqual([]);
  });

  // A timestamp in place of seconds pauses the key for a year, and nothing finds out.
  test('a Retry-After of a year pauses the key for a day at most', async () => {
    await using world = await createProWorld();
    world.petApi.fault = once(START, refusedFor(String(START / 1_000)));
    const petql = await world.start({ plan: 'pro' });
    await world.until(petql.create(1, { waitMs: 0 }));
    await world.pass(DAY_MS + MINUTE_MS);
    expect(createdIn(await world.until(petql.create(1, { waitMs: MINUTE_MS })))).toBe(1);
    expect(brokenPromises(world.history())).toEqual([]);
  });
});

test('beside the probe after a 429 errors say that one call finds out', async () => {
  await using world = await createProWorld();
  world.petApi.fault = ({ number }) => (number === 1 ? refusedFor('30') : HANGS);
  const petql = await world.start({ plan: 'pro' });
  await world.until(petql.create(1, { waitMs: 0 }));
  await world.pass(32_000);
  void petql.create(1, { waitMs: 0 });
  await world.pass(1_000);
  const { errors } = await world.until(petql.create(1, { waitMs: 0 }));
  expect(errors?.[0]?.message).toMatch(
    /^The pet API answered 429, and one call finds out whether it answers again; retry in/,
  );
  expect(world.petApi.log).toHaveLength(2);
});

describe('ten minutes of 429s', () => {
  test.each([
    ['a Retry-After of 1 s', '1'],
    ['no Retry-After', undefined],
  ])('cost at most 8 calls, with %s, and the key recovers', async (_name, retryAfter) => {
    await using world = await createProWorld();
    const petql = await world.start({ plan: 'pro' });
    await world.saturate([petql], 20_000, { clients: 4, batch: 10 });
    const before = world.petApi.log.length;
    const endMs = world.nowMs + STORM_MS;
    world.petApi.fault = ({ atMs }) => (atMs < endMs ? refusedFor(retryAfter) : undefined);
    const waitMs = 2 * MINUTE_MS;
    await world.saturate([petql], STORM_MS, { clients: 4, batch: 10, waitMs });
    const storm = world.petApi.log.slice(before).filter(({ atMs }) => atMs < endMs);
    expect(storm.length).toBeGreaterThanOrEqual(3);
    expect(storm.length).toBeLessThanOrEqual(8);
    await world.pass(15 * MINUTE_MS);
    expect(createdIn(await world.until(petql.create(40, { waitMs: 30_000 })))).toBe(40);
    expect(brokenPromises(world.history())).toEqual([]);
  });
});

describe('a 403', () => {
  // After a 429 every 403 within a quarter of an hour pauses the whole key for a minute, and renews the quarter.
  test('of one operation, again and again after a 429, does not pause the key', async () => {
    await using world = await createProWorld();
    const first = once(START, refusedFor('5'));
    world.petApi.fault = (call) => (call.method === 'POST' ? { status: 403 } : first(call));
    const petql = await world.start({ plan: 'pro' });
    await world.until(petql.read(1, { waitMs: 0 }));
    await world.pass(MINUTE_MS);
    const late: unknown[] = [];
    for (const endMs = world.nowMs + HOUR_MS; world.nowMs < endMs;) {
      await world.until(petql.read(1));
      const { errors } = await world.until(petql.create(1));
      expect(errors?.[0]?.extensions.code).toBe('FORBIDDEN');
      await world.pass(5_000);
      const { data, extensions } = await world.until(petql.read(1, { waitMs: 5_000 }));
      if (!data?.petsById?.[0] || extensions?.petql?.staleReason !== undefined) late.push(extensions);
      await world.pass(10 * MINUTE_MS);
    }
    expect(late).toEqual([]);
  });

  test('without a 429 before it pauses nothing', async () => {
    await using world = await createProWorld();
    world.petApi.fault = ({ method }) => (method === 'POST' ? { status: 403 } : undefined);
    const petql = await world.start({ plan: 'pro' });
    for (let time = 0; time < 3; time += 1) {
      const { errors } = await world.until(petql.create(1));
      expect(errors?.[0]?.extensions.code).toBe('FORBIDDEN');
      const atMs = world.nowMs;
      expect((await world.until(petql.read(1))).errors).toBeUndefined();
      expect(world.nowMs - atMs).toBeLessThan(1_000);
    }
  });

  test('of the probe after a 429 pauses the key, as a ban might be', async () => {
    await using world = await createProWorld();
    const first = once(START, refusedFor('5'));
    world.petApi.fault = (call) => first(call) ?? { status: 403 };
    const petql = await world.start({ plan: 'pro' });
    await world.saturate([petql], 20_000, { clients: 4, batch: 10, waitMs: 60_000 });
    const [, ...probes] = world.petApi.log;
    // A key that never got a list may have no right to: its next create tells.
    expect(probes.slice(0, 3)).toMatchObject([
      { kind: 'create', status: 403 },
      { kind: 'list', status: 403 },
      { kind: 'create', status: 403 },
    ]);
    expect((probes[3]?.sentAtMs ?? Infinity) - (probes[2]?.atMs ?? 0)).toBeGreaterThanOrEqual(5_000);
    expect(world.petApi.log.length).toBeLessThanOrEqual(8);
  });
});

test('while a 429 for the day pauses a key, errors name the day', async () => {
  const plan = { perMinute: 60, perDay: 40, windows: 'fixed', tells: 'day' } as const;
  await using world = await createWorld({ seed: 12, startsAt: new Date(START).toISOString(), keys: { key: plan } });
  const petql = await world.start({ plan: '60/40' });
  await world.until(petql.create(1));
  world.petApi.countOthers('key', plan.perDay);
  await world.until(petql.create(1, { waitMs: 0 }));
  const { errors } = await world.until(petql.create(1, { waitMs: 0 }));
  expect(errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED', window: 'DAY' } }]);
});

test.each([
  [401, 'list'],
  [401, 'create'],
  [403, 'list'],
] as const)('while a key may be banned by a %i to a %s, the probe, cached data is served', async (status, probe) => {
  await using world = await createProWorld();
  const petql = await world.start({ plan: 'pro' });
  const list = async () => (await world.until(petql.ask('{ pets { id } }', { waitMs: 0 }))).extensions?.petql;
  expect(await list()).toMatchObject({ upstreamCalls: 1 });
  const first = once(START, refusedFor('5'));
  world.petApi.fault = (call) => first(call) ?? { status };
  await world.pass(2_000);
  expect(await list()).toMatchObject({ upstreamCalls: 1, staleReason: 'PAUSED' });
  await world.pass(7_000);
  if (probe === 'list') await list();
  else await world.until(petql.create(1, { waitMs: 0 }));
  expect(world.petApi.log.at(-1)).toMatchObject({ status, kind: probe });
  await world.pass(1_000);
  expect(await list()).toMatchObject({ upstreamCalls: 0, staleReason: 'PAUSED' });
  expect((await world.until(petql.create(1, { waitMs: 0 }))).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
});

describe('while all calls of the minute are in flight', () => {
  const PER_MINUTE = 20;
  const plan = `${PER_MINUTE}/1000`;
  const createSlowWorld = () =>
    createWorld({
      seed: 3,
      startsAt: '2026-11-21T09:41:07Z',
      latencyMs: [2_000, 2_000],
      keys: { key: { perMinute: PER_MINUTE, perDay: 1_000, windows: 'sliding', tells: 'nothing' } },
    });

  /** A new key's calls go by trust: one, two, four at a time. */
  async function proveKey(world: World, petql: Petql): Promise<void> {
    await world.until(petql.create(PER_MINUTE));
    await world.pass(2 * MINUTE_MS);
  }

  test('the time to retry counts them as answered now, and not their lease', async () => {
    await using world = await createSlowWorld();
    const petql = await world.start({ plan });
    await proveKey(world, petql);
    const burst = Promise.all(Array.from({ length: PER_MINUTE }, () => petql.create(1)));
    // Two thirds of them wait until others hang.
    await world.pass(2_500);
    const { errors } = await world.until(petql.create(1, { waitMs: 20_000 }));
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED', window: 'MINUTE' });
    expect(errors?.[0]?.extensions.retryAfterMs).toBeLessThanOrEqual(62_000);
    await world.until(burst);
  });

  test('a replica that saw them there looks again before it refuses', async () => {
    await using world = await createSlowWorld();
    const [one, other = one] = await startReplicas(world, createRedis({ seed: 1 }), 2, { plan });
    await proveKey(world, one);
    const burst = Promise.all(Array.from({ length: PER_MINUTE }, () => one.create(1)));
    // Two thirds of them wait until others hang.
    await world.pass(2_500);
    expect((await other.rateLimit()).minute.remaining).toBe(0);
    await world.until(burst);
    await world.pass(62_000);
    expect(createdIn(await world.until(other.create(1, { waitMs: 1_000 })))).toBe(1);
    const { data } = await world.until(other.read(1, { waitMs: 1_000 }));
    expect(data?.['petsById']).toEqual([null]);
    expect(brokenPromises(world.history())).toEqual([]);
  });
});
