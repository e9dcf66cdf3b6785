import { describe, expect, test } from 'vitest';
import { brokenPromises } from '../support/check.ts';
import { outcomeOf } from '../support/operation.ts';
import type { StrictPlanOptions } from '../support/pet-api/strict-plan.ts';
import { MINUTE_MS, createWorld, createdIn } from '../support/world.ts';
import type { Petql, RateLimit, World } from '../support/world.ts';

const START = Date.UTC(2026, 10, 21, 9, 41, 20);
const PLAN = '60/1000';

function createFreeWorld(options: Partial<StrictPlanOptions> = {}): Promise<World> {
  const key: StrictPlanOptions = { perMinute: 60, perDay: 1_000, windows: 'fixed', tells: 'minute', ...options };
  return createWorld({ seed: 21, startsAt: new Date(START).toISOString(), keys: { key } });
}

/** Uses up the minute, whose end is some 38 s away then. */
async function useUpMinute(world: World, petql: Petql): Promise<void> {
  await world.until(Promise.all([1, 2, 3].map(() => petql.create(20))));
  expect(world.petApi.log).toHaveLength(60);
}

test('while a thousand reads wait, others get what is cached', async () => {
  const key = { perMinute: 5_000, perDay: 100_000, windows: 'fixed', tells: 'minute' } as const;
  await using world = await createWorld({ seed: 22, startsAt: new Date(START).toISOString(), keys: { key } });
  const petql = await world.start({ plan: '5000/100000' });
  const list = () => petql.ask('{ pets { id } }');
  await world.until(list());
  await world.pass(2_000);
  const many = Array.from({ length: 11 }, (_, part) =>
    petql.ask('query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', {
      variables: { ids: Array.from({ length: 100 }, (_id, index) => String(100_000 + 100 * part + index)) },
    }),
  );
  const { data, errors, extensions } = await world.until(list());
  expect(errors).toBeUndefined();
  expect(data?.['pets']).toHaveLength(20);
  expect(extensions?.petql).toMatchObject({ upstreamCalls: 0, staleReason: 'CALLS_IN_FLIGHT' });
  // What is over the thousand has been refused at once.
  const last = await Promise.race([many.at(-1), Promise.resolve()]);
  const codes = last?.errors?.map((error) => error.extensions.code);
  expect(codes).toEqual(Array.from({ length: 100 }, () => 'RATE_LIMITED'));
});

describe('while the minute is used up', () => {
  test('writes have the next minute before reads that wait longer, in the order in which they came', async () => {
    await using world = await createFreeWorld({ perMinute: 20 });
    const petql = await world.start({ plan: '20/1000' });
    // From here on petql knows that no list shows these pets, so that each needs a call.
    await world.until(petql.read(2));
    await world.until(petql.create(20 - world.petApi.log.length));
    const reads = [petql.read(5), petql.read(5)];
    await world.pass(1_000);
    const writes = Array.from({ length: 20 }, () => petql.create(1));
    await world.until(Promise.all([...reads, ...writes]));
    const next = world.petApi.log.slice(20, 40);
    // One may be a probe, for the first read.
    expect(next.filter(({ method }) => method === 'POST').length).toBeGreaterThanOrEqual(19);
    const inOrder = next.toSorted((one, other) => one.number - other.number).flatMap(({ name }) => name ?? []);
    const before = world.petApi.log.slice(0, 20).filter(({ method }) => method === 'POST').length;
    expect(inOrder).toEqual(Array.from(inOrder, (_, index) => `pet ${index + before + 1}`));
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test('an operation that can wait long enough is served as the next minute begins', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: PLAN });
    await useUpMinute(world, petql);
    expect(createdIn(await world.until(petql.create(1, { waitMs: 50_000 })))).toBe(1);
    expect(world.nowMs).toBeLessThan(START + 43_000);
  });

  test('one that cannot is refused at once, with the time to retry', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: PLAN });
    await useUpMinute(world, petql);
    const atMs = world.nowMs;
    const { errors } = await world.until(petql.create(1, { waitMs: 20_000 }));
    expect(world.nowMs - atMs).toBeLessThanOrEqual(20);
    const { code, retryAfterMs = 0, retryAt, window } = errors?.[0]?.extensions ?? { code: '' };
    expect({ code, window }).toEqual({ code: 'RATE_LIMITED', window: 'MINUTE' });
    expect(atMs + retryAfterMs).toBeGreaterThanOrEqual(START + 40_000);
    expect(atMs + retryAfterMs).toBeLessThanOrEqual(START + 43_000);
    expect(Math.abs(Date.parse(retryAt ?? '') - atMs - retryAfterMs)).toBeLessThanOrEqual(20);
    await world.pass(retryAfterMs);
    expect(createdIn(await world.until(petql.create(1, { waitMs: 1_000 })))).toBe(1);
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test('one that waits behind others is refused at once where their calls fill the next minute', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: PLAN });
    await useUpMinute(world, petql);
    const ahead = Promise.all(Array.from({ length: 60 }, () => petql.create(1)));
    await world.pass(100);
    const atMs = world.nowMs;
    const { errors } = await world.until(petql.create(1, { waitMs: 60_000 }));
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED', window: 'MINUTE' });
    expect(world.nowMs - atMs).toBeLessThanOrEqual(20);
    await world.until(ahead);
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test('nothing is sent for operations that were aborted', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: PLAN });
    await useUpMinute(world, petql);
    const gone = new AbortController();
    const waiting = Array.from({ length: 30 }, (_, index) => {
      const options = index % 10 === 0 ? {} : { signal: gone.signal };
      return [petql.create(1, options), petql.read(1, options)];
    }).flat();
    const settled = Promise.allSettled(waiting);
    await world.pass(1_000);
    gone.abort(new Error('aborted'));
    const results = await world.until(settled);
    expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(54);
    await world.pass(MINUTE_MS);
    const sent = world.petApi.log.slice(60);
    expect(sent.filter(({ method }) => method === 'POST')).toHaveLength(3);
    // Three reads of one pet each, and a list that may have answered them all.
    expect(sent.filter(({ method }) => method === 'GET').length).toBeLessThanOrEqual(4);
    expect(createdIn(await world.until(petql.create(40, { waitMs: 30_000 })))).toBe(40);
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test('operations that wait are refused when petql stops, and nothing more is sent', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: PLAN });
    await useUpMinute(world, petql);
    const waiting = Promise.all(Array.from({ length: 50 }, () => petql.create(1)));
    await world.pass(1_000);
    const atMs = world.nowMs;
    const [answers] = await world.until(Promise.all([waiting, petql.stop()]));
    expect(world.nowMs - atMs).toBeLessThanOrEqual(100);
    expect(new Set(answers.map(({ errors }) => errors?.[0]?.extensions.code))).toEqual(new Set(['RATE_LIMITED']));
    await world.pass(2 * MINUTE_MS);
    expect(world.petApi.log).toHaveLength(60);
  });
});

test('a used-up day is refused at once, with the day as its window', async () => {
  await using world = await createFreeWorld({ perDay: 90, tells: 'changing' });
  const petql = await world.start({ plan: '60/90' });
  await world.saturate([petql], 2 * MINUTE_MS, { clients: 4, batch: 10 });
  expect(world.petApi.log).toHaveLength(90);
  const atMs = world.nowMs;
  const { errors } = await world.until(petql.create(1, { waitMs: 10 * MINUTE_MS }));
  expect(world.nowMs - atMs).toBeLessThanOrEqual(20);
  const { code, window, retryAfterMs = 0 } = errors?.[0]?.extensions ?? { code: '' };
  expect({ code, window }).toEqual({ code: 'RATE_LIMITED', window: 'DAY' });
  expect(atMs + retryAfterMs).toBeGreaterThanOrEqual(Date.UTC(2026, 10, 22));
  expect(atMs + retryAfterMs).toBeLessThanOrEqual(Date.UTC(2026, 10, 22, 0, 1));
  await world.pass(retryAfterMs);
  expect(createdIn(await world.until(petql.create(1, { waitMs: 1_000 })))).toBe(1);
});

test('a thousand writes wait for a key beside its reads, and more are refused at once', async () => {
  await using world = await createFreeWorld({ perMinute: 2_000, perDay: 10_000 });
  const petql = await world.start({ plan: '2000/10000' });
  world.petApi.fault = ({ number }) => (number === 1 ? { status: 429, headers: { 'retry-after': '60' } } : undefined);
  await world.until(petql.create(1, { waitMs: 1_000 }));
  const reading = petql.read(100);
  await world.pass(10);
  const startedAtMs = world.nowMs;
  const waiting = Promise.all(Array.from({ length: 1_010 }, () => petql.create(1)));
  await world.pass(1_000);
  const refused = world
    .history()
    .operations.filter(({ startedMs, endedMs }) => startedMs >= startedAtMs && endedMs < Infinity);
  expect(refused.map((operation) => outcomeOf(operation))).toEqual(Array.from({ length: 10 }, () => 'RATE_LIMITED'));
  const answers = await world.until(waiting);
  expect(answers.filter((answer) => createdIn(answer) === 1)).toHaveLength(1_000);
  expect((await world.until(reading)).errors).toBeUndefined();
  expect(brokenPromises(world.history())).toEqual([]);
});

test('a call that the plan allows starts within 20 ms', async () => {
  await using world = await createFreeWorld();
  const petql = await world.start({ plan: PLAN });
  for (let call = 0; call < 20; call += 1) {
    const askedAtMs = world.nowMs;
    const before = world.petApi.log.length;
    await world.until(call % 2 === 0 ? petql.create(1) : petql.read(1));
    const { sentAtMs = Infinity } = world.petApi.log[before] ?? {};
    expect(sentAtMs - askedAtMs).toBeLessThanOrEqual(20);
    await world.pass(777);
  }
});

describe.each(['minute', 'day', 'changing', 'nothing'] as const)('rateLimit, by headers of %s', (tells) => {
  const looks: (RateLimit & { readonly arrived: number })[] = [];
  const sums = (window: keyof RateLimit) => looks.map((look) => look[window].used + look[window].remaining);

  test('is never behind the upstream, and its minute adds up', async () => {
    await using world = await createFreeWorld({ tells });
    const petql = await world.start({ plan: PLAN });
    const load = world.saturate([petql], 2 * MINUTE_MS, { clients: 4, batch: 5 });
    for (let look = 0; look < 40; look += 1) {
      await world.pass(3_000);
      looks.push({ ...(await petql.rateLimit()), arrived: world.petApi.log.length });
    }
    await load;
    expect(looks.filter(({ day, arrived }) => day.used < arrived)).toEqual([]);
    expect(sums('minute')).toEqual(looks.map(() => 60));
  });

  test('has a day that adds up', () => {
    expect(sums('day')).toEqual(Array.from({ length: 40 }, () => 1_000));
  });
});
