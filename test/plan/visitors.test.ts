import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { brokenPromises } from '../support/check.ts';
import type { Answer } from '../support/operation.ts';
import type { LoggedCall } from '../support/pet-api/pet-api.ts';
import { between, createRandom } from '../support/random.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { HOUR_MS, MINUTE_MS, createWorld } from '../support/world.ts';
import type { OperationOptions, Petql, World } from '../support/world.ts';

const START = '2026-11-21T09:41:20Z';
const SECOND_MS = 1_000;

interface Plan {
  readonly perMinute: number;
  readonly perDay: number;
}

function createPlanWorld(plan: Plan, windows: 'fixed' | 'sliding' = 'sliding'): Promise<World> {
  return createWorld({ seed: 31, startsAt: START, keys: { key: { ...plan, windows, tells: 'changing' } } });
}

let lastId = 1_000_000;

/** Reads pets that nobody has read before: no cache has them, and each costs a call. */
function readNew(petql: Petql, count: number, visitor?: string, options: OperationOptions = {}): Promise<Answer> {
  const ids = Array.from({ length: count }, () => String((lastId += 1)));
  return petql.ask('query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', {
    ...(visitor && { visitor }),
    ...options,
    variables: { ids },
  });
}

/** How many operations got all that they wanted. */
function servedIn(answers: readonly Answer[]): number {
  return answers.filter(({ errors = [] }) => errors.length === 0).length;
}

/** Returns the most calls in any minute. */
function maxInMinute(calls: readonly LoggedCall[]): number {
  const inMinuteFrom = (atMs: number) => calls.filter((call) => call.atMs >= atMs && call.atMs < atMs + MINUTE_MS);
  return Math.max(0, ...calls.map(({ atMs }) => inMinuteFrom(atMs).length));
}

interface Load {
  readonly everyMs: number;
  readonly forMs: number;
  /** Default: at once. */
  readonly afterMs?: number;
}

/** Does something again and again, whatever becomes of it. */
async function repeat(world: World, { everyMs, forMs, afterMs = 0 }: Load, act: (turn: number) => Promise<Answer>) {
  const acts: Promise<Answer>[] = [];
  if (afterMs > 0) await new Promise((resolve) => void setTimeout(resolve, afterMs));
  const endMs = world.nowMs + forMs;
  while (world.nowMs < endMs) {
    acts.push(act(acts.length));
    await new Promise((resolve) => void setTimeout(resolve, everyMs));
  }
  return Promise.all(acts);
}

/** Knows the plan, and that no list shows these pets. */
async function startWarm(world: World, plan: Plan): Promise<Petql> {
  const petql = await world.start({ plan: `${plan.perMinute}/${plan.perDay}` as never });
  await world.until(readNew(petql, 1, 'first'));
  await world.pass(SECOND_MS);
  return petql;
}

/** One read of a new pet each second, by five visitors in turn. */
function readHonestly(world: World, load: Load, pick: (turn: number) => Petql): Promise<Answer[]> {
  return repeat(world, load, (turn) => readNew(pick(turn), 1, `honest ${turn % 5}`));
}

const LOAD = { everyMs: SECOND_MS, forMs: 70 * SECOND_MS } as const;

describe('beside a greedy visitor, each read of five honest ones is served: it', () => {
  test.each([
    { what: 'reads 10 unknown ids a second', plan: PLANS.pro, ids: 1, everyMs: 100 },
    { what: 'reads 100 unknown ids a second', plan: PLANS.pro, ids: 100, everyMs: SECOND_MS },
    {
      what: 'reads 100 unknown ids a second, on Free',
      plan: PLANS.free,
      ids: 100,
      everyMs: SECOND_MS,
      honestMs: 3_000,
    },
  ])('$what', async ({ plan, ids, everyMs, honestMs = SECOND_MS }) => {
    await using world = await createPlanWorld(plan);
    const petql = await startWarm(world, plan);
    const greedy = repeat(world, { ...LOAD, everyMs }, () => readNew(petql, ids, 'greedy'));
    const answers = await world.until(readHonestly(world, { ...LOAD, everyMs: honestMs }, () => petql));
    await world.until(greedy);
    expect(servedIn(answers)).toBe(answers.length);
    expect(brokenPromises(world.history())).toEqual([]);
  });

  test('reads 40 known ids a second, to refresh them', async () => {
    await using world = await createPlanWorld(PLANS.pro);
    const petql = await startWarm(world, PLANS.pro);
    const known = world.petApi.storeOf('key').hiddenIds().slice(0, 200);
    const readKnown = (ids: readonly string[], visitor?: string) =>
      petql.ask('query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', {
        ...(visitor !== undefined && { visitor }),
        variables: { ids },
      });
    for (const part of [0, 100]) await world.until(readKnown(known.slice(part, part + 100)));
    await world.pass(62 * SECOND_MS);
    const before = world.petApi.log.length;
    const greedy = repeat(world, { ...LOAD, everyMs: 500 }, (turn) =>
      readKnown(known.slice((turn % 10) * 20, (turn % 10) * 20 + 20), 'greedy'),
    );
    const answers = await world.until(readHonestly(world, LOAD, () => petql));
    // It gets stale data where it may not refresh.
    const ofGreedy = await world.until(greedy);
    expect(servedIn(answers)).toBe(answers.length);
    expect(servedIn(ofGreedy)).toBe(ofGreedy.length);
    const refreshes = world.petApi.log.slice(before).filter(({ target }) => known.includes(target));
    expect(maxInMinute(refreshes)).toBeGreaterThan(100);
    expect(maxInMinute(refreshes)).toBeLessThanOrEqual(150);
  });

  test('creates 10 pets a second', async () => {
    await using world = await createPlanWorld(PLANS.pro);
    const petql = await startWarm(world, PLANS.pro);
    const greedy = repeat(world, { ...LOAD, everyMs: SECOND_MS }, () => petql.create(10, { visitor: 'greedy' }));
    const answers = await world.until(readHonestly(world, LOAD, () => petql));
    await world.until(greedy);
    expect(servedIn(answers)).toBe(answers.length);
    const creates = world.petApi.log.filter(({ target }) => target === 'create');
    expect(maxInMinute(creates)).toBeGreaterThan(100);
    expect(maxInMinute(creates)).toBeLessThanOrEqual(150);
  });

  test('reads 10 unknown ids a second of three replicas', async () => {
    await using world = await createPlanWorld(PLANS.pro);
    const replicas = await startReplicas(world, createRedis({ seed: 32 }), 3, { plan: 'pro' });
    await world.until(Promise.all(replicas.map((petql) => readNew(petql, 1, 'first'))));
    await world.pass(SECOND_MS);
    const random = createRandom(33);
    const pick = () => replicas[between(random, 0, 2)] as Petql;
    const before = world.petApi.log.length;
    const greedy = repeat(world, { ...LOAD, everyMs: 100 }, () => readNew(pick(), 1, 'greedy'));
    const answers = await world.until(readHonestly(world, LOAD, pick));
    expect(servedIn(answers)).toBe(answers.length);
    const ofGreedy = servedIn(await world.until(greedy));
    // Half of two minutes, less what the honest ones take.
    expect(ofGreedy).toBeGreaterThan(100);
    expect(ofGreedy).toBeLessThan(230);
    expect(world.petApi.log.length - before).toBeGreaterThanOrEqual(answers.length + ofGreedy);
  });
});

test('a greedy visitor that refreshes known ids leaves some of the refresh budget', async () => {
  await using world = await createPlanWorld(PLANS.free);
  const petql = await startWarm(world, PLANS.free);
  const ids = world.petApi.storeOf('key').hiddenIds().slice(0, 40);
  const document = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';
  const readKnown = (visitor?: string) => petql.ask(document, { ...(visitor && { visitor }), variables: { ids } });
  await world.until(readKnown());
  const greedy = repeat(world, { everyMs: 2 * SECOND_MS, forMs: 12 * MINUTE_MS }, () => readKnown('greedy'));
  const load = { everyMs: 3 * MINUTE_MS, forMs: 12 * MINUTE_MS, afterMs: SECOND_MS };
  const lists = await world.until(repeat(world, load, () => petql.ask('{ pets { id } }', { visitor: 'honest' })));
  const ofGreedy = await world.until(greedy);
  expect(servedIn(ofGreedy)).toBe(ofGreedy.length);
  expect(lists.map(({ extensions }) => extensions?.petql?.staleReason)).toEqual(lists.map(() => undefined));
});

test('a visitor without a share keeps no list from being refreshed through another replica', async () => {
  await using world = await createPlanWorld(PLANS.pro);
  const [one, other] = await startReplicas(world, createRedis({ seed: 34 }), 2, { plan: 'pro' });
  const list = (petql: Petql, visitor: string) => petql.ask('{ pets { id } }', { visitor });
  await world.until(Promise.all([list(one, 'first'), list(other as Petql, 'first')]));
  await world.pass(20 * SECOND_MS);
  await world.until(readNew(one, 100, 'greedy'));
  await world.until(readNew(one, 100, 'greedy'));
  const forMs = 25 * SECOND_MS;
  const greedy = repeat(world, { everyMs: 200, forMs }, () => list(one, 'greedy'));
  const load = { everyMs: 3 * SECOND_MS, forMs, afterMs: 2 * SECOND_MS };
  const answers = await world.until(repeat(world, load, () => list(other as Petql, 'honest')));
  await world.until(greedy);
  expect(answers.map(({ extensions }) => extensions?.petql?.staleReason)).toEqual(answers.map(() => undefined));
});

test('no visitor is refused by what this replica saw before the minute ended, as another one knows', async () => {
  await using world = await createWorld({
    seed: 35,
    startsAt: '2026-11-21T09:41:40Z',
    keys: { key: { ...PLANS.free, windows: 'fixed', tells: 'changing' } },
  });
  const [one, other] = await startReplicas(world, createRedis({ seed: 36 }), 2, { plan: 'free' });
  // A list, since the first pet that is not there costs more: before any call has worked, its 404 proves nothing.
  const list = (petql: Petql) => petql.ask('{ pets { id } }', { visitor: 'first' });
  await world.until(Promise.all([list(one), list(other as Petql)]));
  await world.pass(SECOND_MS);
  await world.until(readNew(one, 12, 'honest'));
  for (let turn = 0; turn < 40; turn += 1) await world.until(readNew(one, 1, `visitor ${turn}`));
  await world.pass(Date.parse('2026-11-21T09:42:01Z') - world.nowMs);
  await world.until(readNew(other as Petql, 1, 'first'));
  await world.pass(3 * SECOND_MS);
  expect((await world.until(readNew(one, 3, 'honest'))).errors).toBeUndefined();
});

test('a greedy visitor leaves half of the day to the others', async () => {
  const plan = { perMinute: 60, perDay: 400 };
  await using world = await createPlanWorld(plan);
  const petql = await startWarm(world, plan);
  const greedy = repeat(world, { everyMs: 3 * MINUTE_MS, forMs: 23 * HOUR_MS }, () => readNew(petql, 20, 'greedy'));
  const load = { everyMs: 15 * MINUTE_MS, forMs: 23 * HOUR_MS, afterMs: MINUTE_MS };
  const answers = await world.until(readHonestly(world, load, () => petql));
  await world.until(greedy);
  expect(servedIn(answers)).toBe(answers.length);
  expect(world.petApi.log.length).toBeGreaterThan(answers.length + 150);
  expect(world.petApi.log.length).toBeLessThan(answers.length + 210);
});

test('a greedy visitor that rests while nobody calls has used its share of the day nevertheless', async () => {
  const plan = { perMinute: 60, perDay: 60 };
  await using world = await createPlanWorld(plan);
  const petql = await startWarm(world, plan);
  for (let turn = 0; turn < 4; turn += 1) {
    await world.until(readNew(petql, 60, 'greedy'));
    await world.pass(20 * MINUTE_MS);
  }
  expect(world.petApi.log.length).toBeLessThanOrEqual(32);
});

test('the first call of a visitor waits for the quota, as all do without visitors', async () => {
  await using world = await createPlanWorld(PLANS.free);
  const petql = await startWarm(world, PLANS.free);
  await world.until(petql.ask('{ pets { id } }'));
  await world.until(readNew(petql, PLANS.free.perMinute - world.petApi.log.length));
  const usedAtMs = world.nowMs;
  expect((await petql.rateLimit()).minute.remaining).toBe(0);
  const late = await world.until(readNew(petql, 2, 'late', { waitMs: 70 * SECOND_MS }));
  expect(world.nowMs - usedAtMs).toBeGreaterThan(50 * SECOND_MS);
  // Its second one finds that it leaves nothing.
  expect(late.errors?.map(({ path }) => path)).toEqual([['petsById', 1]]);
});

test('who has used its share of a calendar day is told to retry when the next one begins, and is served then', async () => {
  const plan = { perMinute: 60, perDay: 60 };
  await using world = await createWorld({
    seed: 37,
    startsAt: '2026-11-21T22:41:20Z',
    keys: { key: { ...plan, windows: 'fixed', tells: 'day' } },
  });
  const petql = await startWarm(world, plan);
  const { errors = [] } = await world.until(readNew(petql, 60, 'greedy'));
  const { retryAfterMs = Infinity, window } = errors.at(-1)?.extensions ?? {};
  expect(window).toBe('DAY');
  expect(retryAfterMs).toBeLessThan(2 * HOUR_MS);
  await world.pass(retryAfterMs);
  expect(servedIn([await world.until(readNew(petql, 1, 'greedy'))])).toBe(1);
});

test.each(['fixed', 'sliding'] as const)('who retries when it is told is served (%s windows)', async (windows) => {
  await using world = await createPlanWorld(PLANS.free, windows);
  const petql = await startWarm(world, PLANS.free);
  for (let turn = 0; turn < 5; turn += 1) {
    const { errors = [] } = await world.until(readNew(petql, 40, 'greedy'));
    const retryAfterMs = errors.at(-1)?.extensions.retryAfterMs ?? Infinity;
    expect(retryAfterMs).toBeLessThanOrEqual(MINUTE_MS + 2 * SECOND_MS);
    await world.pass(retryAfterMs);
    expect(servedIn([await world.until(readNew(petql, 1, 'greedy'))])).toBe(1);
  }
});
