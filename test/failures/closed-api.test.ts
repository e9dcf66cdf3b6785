import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { API_CLOSES, FORTY_KEYS, HIDDEN, KEYS, LIST, NO_CACHE, SOLD } from '../support/failing-world.ts';
import { ask, create, createFailingWorld, linesOf, pet, startProven, work } from '../support/failing-world.ts';
import { FORBIDS, HANGS, REFUSES, box, fails, forKey, on, story } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { chooseCases } from '../support/seed.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const OUTAGES: [what: string, fault: Fault][] = [
  ['503', fails(503)],
  ['502 of nginx', box(502)],
  ['500', fails(500)],
  ['silence', HANGS],
  ['no connection', REFUSES],
  ['a page', box(200)],
];

/** So long petql may take to find out, where calls time out after a second. */
const FOUND_OUT_MS = 5_000;

/** Calls that were sent after this moment. */
const callsAfter = ({ petApi }: World, ms: number) => petApi.log.filter(({ sentAtMs }) => sentAtMs > ms).length;

/** Milliseconds until a read is fresh. */
async function recovery(world: World, petql: Petql, key = 'key'): Promise<number> {
  const atMs = world.nowMs;
  while (world.nowMs < atMs + HOUR_MS) {
    if ((await ask(world, petql, LIST, { key, waitMs: 500 })) === 'fresh') break;
    await world.pass(1_000);
  }
  return world.nowMs - atMs;
}

describe.each(chooseCases(OUTAGES, 6))('an API that answers each call with %s', (_what, fault) => {
  test.each([
    ['four keys', KEYS, ['list', 'pet', 'create']],
    ['one key', ['key'], ['list', 'pet', 'create']],
    ['forty keys', FORTY_KEYS, ['list', 'sold', 'pet', 'create']],
    ['creates alone', KEYS, ['create']],
    ['single pets alone', KEYS, ['pet']],
  ] as const)('gets 15 calls in 3 minutes and 45 in 30, and is back within a tenth: %s', async (_who, keys, wants) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000 }, keys);
    const atMs = world.nowMs;
    world.petApi.fault = fault;
    const load = { keys, wants };
    await world.until(work(world, petql, { ...load, everyMs: 2_000, durationMs: 3 * MINUTE_MS }));
    // The first calls find out: two lists, the second one a second after the first has timed out.
    expect(callsAfter(world, atMs) - callsAfter(world, atMs + FOUND_OUT_MS)).toBeLessThanOrEqual(4 * wants.length + 2);
    expect(callsAfter(world, atMs + FOUND_OUT_MS)).toBeLessThanOrEqual(15);
    await world.until(work(world, petql, { ...load, everyMs: 10_000, durationMs: 27 * MINUTE_MS }));
    expect(callsAfter(world, atMs + FOUND_OUT_MS)).toBeLessThanOrEqual(45);
    world.petApi.fault = undefined;
    expect(await recovery(world, petql, keys[0])).toBeLessThanOrEqual(3 * MINUTE_MS + 30_000);
    const got = await world.until(work(world, petql, { ...load, durationMs: 10_000 }));
    expect(got).toMatchObject({ failed: 0, notCreated: 0 });
  });
});

test.each([
  [1, 30],
  [11, 96],
  [20, 150],
  [45, 300],
])('after %i minutes reads come back within %i s', async (minutes, seconds) => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = fails(503);
  await world.until(work(world, petql, { durationMs: minutes * MINUTE_MS, everyMs: 5_000 }));
  world.petApi.fault = undefined;
  for (const key of KEYS) expect(await recovery(world, petql, key)).toBeLessThanOrEqual(seconds * 1_000);
});

test.runIf(process.env['PETQL_ALL_CASES'])(
  'a day of it costs Free 150 calls, and is over within 15 minutes',
  async () => {
    await using world = await createFailingWorld({
      keys: { key: { ...PLANS.free, windows: 'fixed', tells: 'minute' } },
    });
    const petql = await world.start({ plan: 'free' });
    await ask(world, petql, LIST);
    world.petApi.fault = fails(503);
    world.petApi.log.length = 0;
    await world.until(work(world, petql, { keys: ['key'], durationMs: DAY_MS, everyMs: 30_000 }));
    expect(world.petApi.log.length).toBeLessThanOrEqual(150);
    world.petApi.fault = undefined;
    expect(await recovery(world, petql)).toBeLessThanOrEqual(15 * MINUTE_MS + 30_000);
  },
);

test('one call at a time finds out, by turns a list and another one, after 1 s, doubled to 30 s', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = fails(503);
  await world.until(work(world, petql, { durationMs: 3_000, everyMs: 500 }));
  world.petApi.log.length = 0;
  await world.until(work(world, petql, { durationMs: 3 * MINUTE_MS, everyMs: 500 }));
  const { log } = world.petApi;
  for (const [index, call] of log.slice(1).entries()) {
    const before = log[index];
    expect(call.sentAtMs).toBeGreaterThanOrEqual(before?.answeredAtMs ?? Infinity);
    expect([before?.kind, call.kind].filter((kind) => kind === 'list')).toHaveLength(1);
    const gapMs = call.sentAtMs - (before?.sentAtMs ?? 0);
    expect(gapMs).toBeGreaterThanOrEqual(900);
    expect(gapMs).toBeLessThanOrEqual(32_000);
  }
});

describe('what does not close it', () => {
  const CLOSED = [API_CLOSES];

  test('is a burst of lists that fail within a second', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = fails(503);
    const lists = KEYS.flatMap((key) =>
      [LIST, SOLD].map((document) => petql.ask(document, { key, waitMs: 0, ...NO_CACHE })),
    );
    await world.until(Promise.all(lists));
    world.petApi.fault = undefined;
    await world.pass(1_100);
    for (const key of KEYS) {
      expect(await ask(world, petql, LIST, { key, ...NO_CACHE })).toBe('fresh');
      expect(await create(world, petql, { key })).toBe('fresh');
    }
    expect(linesOf(petql, ...CLOSED)).toEqual([]);
  });

  test('is one key whose calls all fail, where another has called within ten minutes', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = forKey('key', fails(503));
    const failing = work(world, petql, { keys: ['key'], durationMs: 2 * MINUTE_MS });
    await world.pass(30_000);
    // They have called before, and do so again only now.
    const got = await world.until(work(world, petql, { keys: KEYS.slice(1), durationMs: 30_000 }));
    expect(got).toMatchObject({ failed: 0, notCreated: 0 });
    await world.until(failing);
    expect(linesOf(petql, ...CLOSED)).toEqual([]);
  });

  test('are lists, where another call has worked within 30 s', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = on('list', fails(503));
    const lists = work(world, petql, { durationMs: 2 * MINUTE_MS, wants: ['list', 'sold'] });
    const got = await world.until(
      work(world, petql, { durationMs: 2 * MINUTE_MS, everyMs: 20_000, wants: ['pet', 'create'] }),
    );
    expect(got).toMatchObject({ failed: 0, notCreated: 0 });
    await world.until(lists);
    expect(linesOf(petql, ...CLOSED)).toEqual([]);
  });
});

test('a story that is down for a minute, again after 40 minutes in which nobody asked, speaks of that minute', async () => {
  await using world = await createFailingWorld();
  const petql = await world.start({ plan: 'business', maxStaleMs: 0, maxWaitMs: 500 });
  world.petApi.fault = story('down');
  const startMs = world.nowMs;
  const askAt = async (seconds: number) => {
    await world.pass(startMs + seconds * 1_000 - world.nowMs);
    return world.until(petql.ask(LIST, { waitMs: 500 }));
  };
  for (const seconds of [0, 20, 30, 40, 2_400, 2_403, 2_406]) {
    const { errors = [] } = await askAt(seconds);
    expect([seconds, errors.length]).toEqual([seconds, seconds === 0 ? 0 : 1]);
    // It ends 75 s after it began.
    for (const { extensions } of errors) expect(extensions.retryAfterMs).toBeLessThanOrEqual(31_000);
  }
  expect((await askAt(2_425)).errors).toBeUndefined();
});

// A try that shows nothing is a try.
const NOTHING_SHOWN: [what: string, rule: FaultRule][] = [
  ['422', on('create', fails(422))],
  ['401 for creates', on('create', fails(401))],
  ['403 of a firewall', on('create', box(403))],
  ['a 429 without a Retry-After', on('create', fails(429))],
  ['413 of nginx', on('create', box(413))],
  ['400', on('create', fails(400))],
];

test.each(chooseCases(NOTHING_SHOWN, 3))(
  'creates that are answered %s do not open it, nor cost more calls',
  async (_what, rule) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = fails(503);
    await world.until(work(world, petql, { durationMs: 30_000 }));
    world.petApi.fault = [rule, fails(503)];
    world.petApi.log.length = 0;
    await world.until(work(world, petql, { durationMs: 3 * MINUTE_MS }));
    expect(world.petApi.log.length).toBeLessThanOrEqual(20);
  },
);

test('a key that may not list is tried by its other calls', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  const forbids = [forKey('key', on('list', FORBIDS))];
  world.petApi.fault = forbids;
  await ask(world, petql, LIST, NO_CACHE);
  world.petApi.fault = [...forbids, fails(503)];
  await world.until(work(world, petql, { durationMs: MINUTE_MS, keys: ['key'], wants: ['create', 'pet'] }));
  world.petApi.fault = forbids;
  await world.pass(35_000);
  expect(await ask(world, petql, pet(HIDDEN), { ...NO_CACHE, waitMs: 2_000 })).toBe('fresh');
  expect(await create(world, petql)).toBe('fresh');
});

test('a list that petql asks for itself counts in the account, and in no operation', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world, {}, ['key']);
  const before = (await petql.rateLimit()).day.used;
  world.petApi.fault = fails(503);
  let billed = 0;
  for (let second = 0; second < 120; second += 1) {
    const { extensions } = await world.until(petql.create(1, { waitMs: 0 }));
    billed += extensions?.petql?.upstreamCalls ?? 0;
    await world.pass(1_000);
  }
  const creates = world.petApi.log.filter(({ kind }) => kind === 'create').length;
  const lists = world.petApi.log.filter(({ target }) => target === 'all').length;
  expect([billed, creates + lists]).toEqual([creates, world.petApi.log.length]);
  expect(lists).toBeGreaterThan(2);
  expect((await petql.rateLimit()).day.used - before).toBe(world.petApi.log.length);
});

test('of three replicas one list opens it for all, and they share its tries', async () => {
  await using world = await createFailingWorld();
  const replicas = await startReplicas(world, createRedis({ seed: 1 }), 3, { plan: 'business', maxWaitMs: 1_000 });
  for (const petql of replicas) await world.until(work(world, petql, { durationMs: 20_000, everyMs: 500 }));
  world.petApi.fault = fails(503);
  const atMs = world.nowMs;
  const load = { everyMs: 2_000, wants: ['list', 'create'], durationMs: 10 * MINUTE_MS } as const;
  await world.until(Promise.all(replicas.map((petql) => work(world, petql, load))));
  const foundOutMs = atMs + FOUND_OUT_MS;
  expect(callsAfter(world, foundOutMs) - callsAfter(world, atMs + 3 * MINUTE_MS)).toBeLessThanOrEqual(15);
  expect(callsAfter(world, foundOutMs)).toBeLessThanOrEqual(30);
  world.petApi.fault = undefined;
  const [one, ...others] = replicas;
  const firstMs = await recovery(world, one);
  expect(firstMs).toBeLessThanOrEqual(MINUTE_MS + 30_000);
  await world.pass(1_000);
  for (const petql of others) expect(await create(world, petql)).toBe('fresh');
});
