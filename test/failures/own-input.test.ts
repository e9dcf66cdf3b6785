import { describe, expect, test } from 'vitest';
import { chooseCases } from '../support/seed.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import { HANGS, RESETS, box, fails, on, slow } from '../support/pet-api/fault.ts';
import {
  HIDDEN,
  KEYS,
  LIST,
  NO_CACHE,
  SOLD,
  ask,
  create,
  createFailingWorld,
  linesOf,
} from '../support/failing-world.ts';
import { pet, petsPage, resultOf, startProven, work } from '../support/failing-world.ts';
import type { Petql, World } from '../support/world.ts';

/** Names of pets that the pet API answers by this fault; all others are created. */
const onNames = (pattern: RegExp, rule: FaultRule): FaultRule => [
  (call) => (call.name !== undefined && pattern.test(call.name) ? rule : undefined),
];

const createNamed = async (world: World, petql: Petql, name: string, key: string) =>
  resultOf(
    await world.until(
      petql.ask('mutation ($name: String!) { createPet(input: { name: $name, categoryId: 1 }) { pet { id } } }', {
        key,
        waitMs: 2_000,
        variables: { name },
      }),
    ),
  );

const REJECTIONS: [what: string, fault: Fault][] = [
  ['409', fails(409)],
  ['423', fails(423)],
  ['402 of a CDN', box(402, 'cdn')],
  ['422', fails(422)],
  ['422 of FastAPI', box(422, 'fastapi')],
  ['415 of Express', box(415, 'express')],
  ['413 of nginx', box(413)],
  ['404 of a router', box(404, 'go')],
  ['451 of a proxy', box(451, 'proxy')],
];

describe.each(chooseCases(REJECTIONS, 3))('creates of two keys that are answered %s', (_what, fault) => {
  test('refuse nobody, neither others nor those two', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = onNames(/^bad/, fault);
    for (const key of ['key', 'second']) await createNamed(world, petql, 'bad', key);
    expect(world.petApi.log.filter(({ status }) => status >= 400)).toHaveLength(2);
    for (const key of ['third', 'key']) {
      expect(await ask(world, petql, SOLD, { key, ...NO_CACHE })).toBe('fresh');
      expect(await ask(world, petql, pet(HIDDEN), { key, ...NO_CACHE })).toBe('fresh');
      expect(await create(world, petql, { key })).toBe('fresh');
    }
  });

  test('again and again, are in no line of the log and cost the others nothing', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = onNames(/^bad/, fault);
    const bad: Promise<unknown>[] = [];
    for (let turn = 0; turn < 9; turn += 1) {
      bad.push(createNamed(world, petql, `bad ${turn}`, KEYS[turn % 2] ?? ''));
      const got = await world.until(work(world, petql, { durationMs: 2_000, keys: ['third', 'fourth'] }));
      expect(got).toMatchObject({ failed: 0, stale: 0, notCreated: 0 });
    }
    await world.until(Promise.all(bad));
    expect(linesOf(petql)).toEqual([]);
    expect(JSON.parse(await petql.page('/health/ready'))).toMatchObject({ status: 'ok' });
  });
});

// A typo of one client is no alert at night.
const FRAMEWORKS: [what: string, fault: Fault][] = [
  ['Flask', box(400, 'nginx')],
  ['Spring', box(400, 'spring')],
  ['a CDN', box(400, 'cdn')],
  ['Express', box(400, 'express')],
  ['Go', box(400, 'go')],
  ['Django', box(400, 'django')],
];

test.each(chooseCases(FRAMEWORKS, 3))(
  'a create that is invalid for %s is in no line of the log',
  async (_what, fault) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = onNames(/^bad/, fault);
    for (let minute = 0; minute < 3; minute += 1) {
      expect(await createNamed(world, petql, `bad ${minute}`, 'key')).toBe('DOWNSTREAM_SERVICE_ERROR');
      await world.until(work(world, petql, { durationMs: 60_000, everyMs: 10_000 }));
    }
    expect(linesOf(petql)).toEqual([]);
  },
);

const BAD_IDS: [what: string, ids: readonly string[], fault: Fault][] = [
  ['500', ['2147483648', '3000000000', '9223372036854775807'], fails(500)],
  ['502 of nginx', ['-7', '-8', '-9'], box(502)],
  ['503 with a Retry-After of 15 minutes', ['-1', '-2', '-3'], fails(503, { headers: { 'retry-after': '900' } })],
  ['422 of FastAPI', ['-1', '-2', '-3'], box(422, 'fastapi')],
  ['a reset connection', ['-1', '-2', '-3'], RESETS],
  ['silence', ['-1', '-2', '-3'], HANGS],
  ['400 with the Error body', ['-1', '-2', '-3'], fails(400)],
  ['half of its JSON', ['-1', '-2', '-3'], { body: '{"id":-1,' }],
  ['408', ['-1', '-2', '-3'], fails(408)],
];

describe.each(chooseCases(BAD_IDS, 3))('ids that are answered %s', (_what, _ids, fault) => {
  const bad = _ids as `${bigint}`[];

  test('of two keys, cost others no read and no create', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000 });
    world.petApi.fault = on(bad, fault);
    const asked: Promise<unknown>[] = [];
    for (let second = 0; second < 10; second += 1) {
      for (const key of ['key', 'second']) asked.push(petql.ask(petsPage(bad), { key, ...NO_CACHE }));
      const got = await world.until(work(world, petql, { durationMs: 1_000, keys: ['third'] }));
      expect(got).toMatchObject({ failed: 0, notCreated: 0 });
    }
    await world.until(Promise.all(asked));
  });

  test('of one visitor, together with its bad create, cost the others behind the same key nothing', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { upstreamTimeoutMs: 1_000 });
    world.petApi.fault = [on(bad, fault), onNames(/^bad/, fault)];
    const asked: Promise<unknown>[] = [];
    for (let second = 0; second < 10; second += 1) {
      asked.push(petql.ask(pet(bad[0] ?? ''), { visitor: 'careless' }));
      asked.push(createNamed(world, petql, `bad ${second}`, 'key'));
      const options = { visitor: `visitor ${second % 3}` };
      const got = await world.until(work(world, petql, { durationMs: 1_000, keys: ['key'], options }));
      expect(got).toMatchObject({ failed: 0, notCreated: 0 });
    }
    await world.until(Promise.all(asked));
  });
});

const MAINTENANCE: [what: string, fault: Fault][] = [
  ['503 and a Retry-After of 15 minutes', fails(503, { headers: { 'retry-after': '900' } })],
  ['502 of nginx', box(502)],
  ['500 after 2 s', fails(500, slow(2_000))],
];

describe.each(chooseCases(MAINTENANCE, 3))('while each create is answered %s', (_what, fault) => {
  const READS = ['list', 'pet'] as const;

  test('and one id fails, all reads are fresh', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = [on('create', fault), on('-1', fails(500))];
    const creates = work(world, petql, { durationMs: 60_000, everyMs: 5_000, wants: ['create'] });
    const bad = petql.ask(pet('-1'));
    const got = await world.until(work(world, petql, { durationMs: 60_000, wants: READS }));
    expect(got).toMatchObject({ failed: 0, stale: 0 });
    expect((await world.until(creates)).created).toBe(0);
    await world.until(bad);
  });

  test('by two keys, the reads of all keys are fresh, and each create is tried', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = on('create', fault);
    const creating = work(world, petql, { durationMs: 30_000, wants: ['create'], keys: ['key', 'second'] });
    const reading = work(world, petql, { durationMs: 30_000, wants: READS });
    expect(await world.until(reading)).toMatchObject({ failed: 0, stale: 0 });
    expect([...(await world.until(creating)).codes]).toEqual(['OUTCOME_UNKNOWN']);
    expect(world.petApi.log.filter(({ kind }) => kind === 'create')).toHaveLength(30);
  });

  test.each([
    ['a list', 'sold', ['list', 'pet']],
    ['each single pet', 'get', ['list', 'sold']],
  ] as const)('and so is %s, the reads of what works are fresh', async (_which, broken, wants) => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    world.petApi.fault = [on('create', fault), on(broken, fails(503))];
    const others = [
      work(world, petql, { durationMs: 60_000, wants: ['create'] }),
      work(world, petql, { durationMs: 60_000, wants: [broken === 'get' ? 'pet' : 'sold'] }),
    ];
    const got = await world.until(work(world, petql, { durationMs: 60_000, wants }));
    expect(got).toMatchObject({ failed: 0, stale: 0 });
    await world.until(Promise.all(others));
  });
});

test('a create that failed does not delay the next one of its key', async () => {
  await using world = await createFailingWorld();
  const petql = await startProven(world);
  world.petApi.fault = onNames(/^bad/, fails(500));
  for (let turn = 0; turn < 5; turn += 1) {
    expect(await createNamed(world, petql, 'bad', 'key')).toBe('OUTCOME_UNKNOWN');
    const atMs = world.nowMs;
    expect(await create(world, petql)).toBe('fresh');
    expect(world.nowMs - atMs).toBeLessThan(500);
  }
  expect(await ask(world, petql, LIST, NO_CACHE)).toBe('fresh');
});
