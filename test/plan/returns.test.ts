import { afterEach, describe, expect, test, vi } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { CLIENTS, loadRecipe } from '../clients/recipes.ts';
import { brokenPromises } from '../support/check.ts';
import type { Answer } from '../support/operation.ts';
import { tooMany } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const KEY = 'demo-free';
const READ = 'query ($id: ID!) { pet(id: $id) { id } }';
const KINDS = [
  { windows: 'fixed', tells: 'minute' },
  { windows: 'sliding', tells: 'minute' },
  { windows: 'fixed', tells: 'day' },
] as const;

afterEach(() => void vi.unstubAllGlobals());

/** Lets `fetch` lead to petql. Returns the times at which each pet was to be read again, which grow with each refusal. */
function stubFetch(serve: (request: Request) => Promise<Response>): ReadonlyMap<string, readonly number[]> {
  const toldMs = new Map<string, readonly number[]>();
  vi.stubGlobal('fetch', async (input: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(input, init);
    const id = /"id":"(\d+)"/.exec(await request.clone().text())?.[1] ?? '';
    const response = await serve(request);
    const waitMs = /"retryAfterMs":(\d+)/.exec(await response.clone().text())?.[1];
    if (waitMs !== undefined) toldMs.set(id, [...(toldMs.get(id) ?? []), Date.now() + Number(waitMs)]);
    return response;
  });
  return toldMs;
}

function toldBy({ errors = [] }: Answer): number[] {
  return errors.map(({ extensions }) => extensions.retryAfterMs ?? 0);
}

/** Returns the most times that lie in one minute, wherever it begins. */
function mostInAMinute(times: readonly number[]): number {
  return Math.max(...times.map((fromMs) => times.filter((ms) => ms >= fromMs && ms < fromMs + MINUTE_MS).length));
}

const cases = CLIENTS.flatMap((client) => KINDS.map((kind) => ({ client, ...kind })));

// By the retries of each recipe in schema/recipes.
test.each(chooseCases(cases, 4))(
  '300 clients of a Free key return one minute after the other, and are all served ($client, $windows windows, headers of the $tells)',
  async ({ client, windows, tells }) => {
    const key = { ...PLANS.free, windows, tells };
    await using world = await createWorld({ seed: 51, startsAt: '2026-11-21T09:41:20Z', keys: { [KEY]: key } });
    const petql = await world.start({ plan: 'free', maxWaitMs: 10_000 });
    // From here on petql knows that no list shows these pets, so that each needs a call.
    await world.until(petql.read(3, { key: KEY }));
    const toldMs = stubFetch(petql.fetch);
    const { query } = await world.until(loadRecipe(client));

    const startMs = world.nowMs;
    const ids = Array.from({ length: 300 }, (_, index) => String(900_000 + index));
    const reads = ids.slice(0, 150).map((id) => query(READ, { id }));
    for (const id of ids.slice(150)) {
      await world.pass(20);
      reads.push(query(READ, { id }));
    }
    const results = await world.until(Promise.all(reads));
    expect(results.flatMap(({ error }) => error ?? [])).toEqual([]);
    expect(world.nowMs - startMs).toBeLessThanOrEqual(6 * MINUTE_MS);

    const told = [...toldMs.values()];
    expect(told.length).toBeGreaterThan(230);
    expect(mostInAMinute(told.flatMap(([first]) => first ?? []))).toBeLessThanOrEqual(75);
    expect(Math.max(...told.map((times) => times.length))).toBeLessThanOrEqual(2);
    expect(brokenPromises(world.history())).toEqual([]);
  },
);

test.each(CLIENTS)('no %s client waits for hours, as after a 429 that says so', async (client) => {
  const key = { ...PLANS.free, ...KINDS[0] };
  await using world = await createWorld({ seed: 52, startsAt: '2026-11-21T09:41:20Z', keys: { [KEY]: key } });
  const petql = await world.start({ plan: 'free' });
  const toldMs = stubFetch(petql.fetch);
  const { query } = await world.until(loadRecipe(client));

  world.petApi.fault = tooMany(5 * 3_600);
  const startMs = world.nowMs;
  await world.until(query(READ, { id: '900000' }));
  expect(world.nowMs - startMs).toBeLessThan(MINUTE_MS);
  expect(toldMs.get('900000')).toHaveLength(1);
});

describe('on a used-up minute', () => {
  async function createUsedUpWorld(): Promise<{ world: World; petql: Petql }> {
    const key = { ...PLANS.free, windows: 'fixed', tells: 'minute' } as const;
    const world = await createWorld({ seed: 53, startsAt: '2026-11-21T09:41:20Z', keys: { key } });
    const petql = await world.start({ plan: 'free' });
    await world.until(Promise.all([1, 2, 3].map(() => petql.create(20))));
    return { world, petql };
  }

  /** Returns what so many clients are told that create a pet in one moment. */
  async function refuse(world: World, petql: Petql, clients: number): Promise<number[]> {
    const creates = Array.from({ length: clients }, () => petql.create(1, { waitMs: 0 }));
    return (await world.until(Promise.all(creates))).flatMap(toldBy);
  }

  /** Returns the wait of a create by a dry run. */
  async function dryRunMs(world: World, petql: Petql): Promise<number> {
    const document = 'mutation { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } } }';
    const { extensions } = await world.until(petql.ask(document, { dryRun: true, waitMs: 0 }));
    return extensions?.petql.dryRun.waitMs;
  }

  test('refused clients are told the wait that a dry run says, and up to a second more', async () => {
    const { world, petql } = await createUsedUpWorld();
    await using _ = world;
    const firstMs = await dryRunMs(world, petql);
    const first = await refuse(world, petql, 60);
    expect(first).toHaveLength(60);
    expect(Math.min(...first)).toBeGreaterThanOrEqual(firstMs);
    expect(Math.max(...first)).toBeLessThanOrEqual(firstMs + 1_001);
    expect(new Set(first).size).toBeGreaterThan(30);

    // They fill the minute, for a dry run too.
    const nextMs = await dryRunMs(world, petql);
    expect(nextMs - firstMs).toBeGreaterThanOrEqual(MINUTE_MS);
    const [next = 0] = await refuse(world, petql, 1);
    expect(next).toBeGreaterThanOrEqual(nextMs);
    expect(next).toBeLessThanOrEqual(nextMs + 1_001);
  });

  test.each([0, 300, 900])('a visitor that comes back each %d ms counts once', async (everyMs) => {
    const { world, petql } = await createUsedUpWorld();
    await using _ = world;
    const careless: Promise<Answer>[] = [];
    for (let turn = 0; turn < 30; turn += 1) {
      careless.push(petql.create(1, { waitMs: 0, visitor: 'careless' }));
      careless.push(petql.read(1, { waitMs: 0, visitor: 'careless' }));
      await world.pass(everyMs);
    }
    await world.until(Promise.all(careless));
    expect(Math.max(...(await refuse(world, petql, 58)))).toBeLessThan(MINUTE_MS);
  });

  test('a request is told one time for all of its reads, and counts once', async () => {
    const { world, petql } = await createUsedUpWorld();
    await using _ = world;
    const told = toldBy(await world.until(petql.read(60, { waitMs: 0 })));
    expect(told).toHaveLength(60);
    expect(new Set(told).size).toBe(1);
    expect(Math.max(...(await refuse(world, petql, 59)))).toBeLessThan(MINUTE_MS);
  });
});

test.each([12, 30, 55])(
  'after a minute that others have used up, %d clients return with the next one',
  async (clients) => {
    const key = { ...PLANS.free, windows: 'fixed', tells: 'minute' } as const;
    await using world = await createWorld({ seed: 54, startsAt: '2026-11-21T09:41:38Z', keys: { key } });
    const petql = await world.start({ plan: 'free' });
    await world.until(petql.create(3));
    world.petApi.countOthers('key', 57);
    const creates = Array.from({ length: clients + 1 }, () => petql.create(1, { waitMs: 1_000 }));
    const toldMs = (await world.until(Promise.all(creates))).flatMap(toldBy);
    expect(toldMs.length).toBeGreaterThanOrEqual(clients);
    expect(Math.max(...toldMs)).toBeLessThanOrEqual(30_000);
  },
);

test('clients of a used-up day return one minute after the other, too', async () => {
  const key = { perMinute: 20, perDay: 40, windows: 'fixed', tells: 'day' } as const;
  await using world = await createWorld({ seed: 52, startsAt: '2026-11-21T23:50:00Z', keys: { key } });
  const petql = await world.start({ plan: '20/40' });
  await world.until(petql.read(3));
  await world.until(petql.create(20 - world.petApi.log.length));
  await world.pass(2 * MINUTE_MS);
  await world.until(petql.create(20));
  const waits = await world.until(
    Promise.all(
      Array.from({ length: 60 }, (_, index) => petql.ask(`{ pet(id: ${900_000 + index}) { id } }`, { waitMs: 0 })),
    ),
  );
  expect(mostInAMinute(waits.flatMap(toldBy))).toBeLessThanOrEqual(25);
  expect(waits[0]?.errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED', window: 'DAY' });
});
