import { describe, expect, test } from 'vitest';
import {
  API_CLOSES,
  API_OPENS,
  GETS_CLOSE,
  GETS_OPEN,
  KEYS,
  LIST,
  LIST_CLOSES,
  LIST_OPENS,
} from '../support/failing-world.ts';
import { NO_CACHE, SOLD, ask, createFailingWorld, linesOf, pet, startProven, work } from '../support/failing-world.ts';
import { HANGS, box, fails, on } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const CLOSING = [API_CLOSES, API_OPENS, LIST_CLOSES, LIST_OPENS, GETS_CLOSE, GETS_OPEN];

const health = async (petql: Petql) => JSON.parse(await petql.page('/health/ready')).status as string;

/** The operations that are closed, as the metric has them. */
async function closedIn(petql: Petql): Promise<string[]> {
  const samples = (await petql.page('/metrics')).matchAll(
    /^petql_closed_operations\{.*?operation="(\w+)".*\} (\d+)$/gm,
  );
  return [...samples].filter(([, , value]) => value !== '0').map(([, operation]) => operation ?? '');
}

const FAILURES: [what: string, fault: Fault, shown: object][] = [
  ['503 with the Error body', fails(503), { status: 503 }],
  ['502 of nginx', box(502), { status: 502 }],
  ['a page', box(200), { status: 200 }],
  ['404 of a router', box(404, 'go'), { status: 404 }],
  ['silence', HANGS, {}],
  ['500 with the Error body', fails(500), { status: 500 }],
];

const start = (world: World) => startProven(world, { admin: true, upstreamTimeoutMs: 1_000 });

describe.each(chooseCases(FAILURES, 3))('%s', (_what, fault, shown) => {
  test('of each call is one line as the API closes, and one as it opens, whatever the keys', async () => {
    await using world = await createFailingWorld();
    const petql = await start(world);
    expect([await closedIn(petql), await health(petql)]).toEqual([[], 'ok']);
    world.petApi.fault = fault;
    await world.until(work(world, petql, { durationMs: 5 * MINUTE_MS, everyMs: 2_000 }));
    expect(linesOf(petql, API_CLOSES, API_OPENS)).toMatchObject([{ level: 40, ...shown }]);
    expect(await closedIn(petql)).toContain('api');
    expect(await health(petql)).toBe('degraded');

    world.petApi.fault = undefined;
    await world.until(
      work(world, petql, { durationMs: 2 * MINUTE_MS, everyMs: 2_000, wants: ['list', 'sold', 'pet', 'create'] }),
    );
    expect(linesOf(petql, API_CLOSES, API_OPENS).map(({ level }) => level)).toEqual([40, 30]);
    expect([await closedIn(petql), await health(petql)]).toEqual([[], 'ok']);
    expect(JSON.stringify(linesOf(petql))).not.toMatch(/:"(?:key|second|third|fourth)"|pet-api\.test|nginx/);
  });

  test('of one list is one line as it closes, and one as it opens; after two minutes health is degraded', async () => {
    await using world = await createFailingWorld();
    const petql = await start(world);
    world.petApi.fault = on('sold', fault);
    const load = { wants: ['list', 'sold', 'pet', 'create'], everyMs: 2_000 } as const;
    await world.until(work(world, petql, { ...load, durationMs: MINUTE_MS }));
    expect(await closedIn(petql)).toEqual(['sold']);
    expect(await health(petql)).toBe('ok');
    await world.until(work(world, petql, { ...load, durationMs: 2 * MINUTE_MS }));
    expect(await health(petql)).toBe('degraded');
    expect(linesOf(petql, ...CLOSING).filter(({ msg }) => msg === LIST_CLOSES).length).toBeLessThanOrEqual(KEYS.length);
    expect(linesOf(petql, ...CLOSING)[0]).toMatchObject({ level: 40, msg: LIST_CLOSES, operation: 'sold', ...shown });

    world.petApi.fault = undefined;
    await world.until(work(world, petql, { ...load, durationMs: 2 * MINUTE_MS }));
    const lines = linesOf(petql, ...CLOSING).map(({ level, msg, operation }) => `${level} ${msg} ${operation}`);
    expect(new Set(lines)).toEqual(new Set([`40 ${LIST_CLOSES} sold`, `30 ${LIST_OPENS} sold`]));
    expect([await closedIn(petql), await health(petql)]).toEqual([[], 'ok']);
  });
});

test('a closing line has the code and the message of the Error body', async () => {
  await using world = await createFailingWorld();
  const petql = await start(world);
  const body = JSON.stringify({ code: 'migration', message: 'The store is being moved.', status: 503 });
  world.petApi.fault = { status: 503, body };
  await world.until(work(world, petql, { durationMs: MINUTE_MS }));
  const [line] = linesOf(petql, API_CLOSES);
  expect(line).toMatchObject({ status: 503 });
  expect(JSON.stringify(line)).toMatch(/migration.*The store is being moved\.|The store is being moved\..*migration/);
});

test('gets that close are one line, a number and, after two minutes, a degraded health', async () => {
  await using world = await createFailingWorld({ pets: 350 });
  const petql = await start(world);
  await ask(world, petql, SOLD, NO_CACHE);
  void work(world, petql, { durationMs: 5_000, everyMs: 300, wants: ['list'], keys: ['fourth'] });
  world.petApi.fault = [on('sold', fails(503)), on('get', box(404))];
  for (const id of ['153', '156']) await world.until(petql.ask(pet(id), { ...NO_CACHE, waitMs: 3_000 }));
  world.petApi.fault = on('get', box(404));
  expect(await closedIn(petql)).toContain('getPet');
  expect(await petql.page('/metrics')).toMatch(/^petql_get_route_available(?:\{.*\})? 0$/m);
  await world.until(work(world, petql, { durationMs: 150_000, everyMs: 2_000, wants: ['list', 'sold', 'pet'] }));
  expect(await health(petql)).toBe('degraded');
  expect(linesOf(petql, GETS_CLOSE, GETS_OPEN).map(({ level }) => level)).toEqual([40]);

  world.petApi.fault = undefined;
  await world.until(work(world, petql, { durationMs: MINUTE_MS, everyMs: 1_000, wants: ['list', 'pet'] }));
  expect(linesOf(petql, GETS_CLOSE, GETS_OPEN).map(({ level }) => level)).toEqual([40, 30]);
  expect([await closedIn(petql), await health(petql)]).toEqual([[], 'ok']);
});

test.each(
  chooseCases<[string, Fault]>(
    [
      ['500', fails(500)],
      ['502 of nginx', box(502)],
      ['silence', HANGS],
    ],
    3,
  ),
)('single ids and creates that meet %s are no line, no number, and no degraded health', async (_what, fault) => {
  await using world = await createFailingWorld();
  const petql = await start(world);
  world.petApi.fault = on(['-1', '-2'], fault);
  const asked: Promise<unknown>[] = [];
  for (let turn = 0; turn < 40; turn += 1) {
    for (const id of ['-1', '-2']) asked.push(petql.ask(pet(id), { key: KEYS[turn % 4] ?? '' }));
    await world.until(work(world, petql, { durationMs: 5_000, everyMs: 2_500 }));
  }
  await world.until(Promise.all(asked));
  expect(linesOf(petql)).toEqual([]);
  expect([await closedIn(petql), await health(petql)]).toEqual([[], 'ok']);
});

test('where lists fail, a pet that there is not is no sign that they work again', async () => {
  await using world = await createFailingWorld();
  const petql = await start(world);
  await ask(world, petql, LIST, NO_CACHE);
  world.petApi.fault = [on('list', fails(503)), on('9001', fails(404))];
  const asked = work(world, petql, { durationMs: MINUTE_MS, wants: ['list', 'sold'] });
  for (let second = 0; second < 60; second += 1) {
    await ask(world, petql, pet('9001'), NO_CACHE);
    await world.pass(1_000);
  }
  await world.until(asked);
  expect(linesOf(petql, LIST_OPENS, API_OPENS, 'calls to the pet API succeed again')).toEqual([]);
});
