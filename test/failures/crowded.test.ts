import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import {
  LIST,
  NO_CACHE,
  createFailingWorld,
  idsFrom,
  pet,
  petsPage,
  resultOf,
  startProven,
} from '../support/failing-world.ts';
import { HANGS, on, slow } from '../support/pet-api/fault.ts';
import type { FaultRule } from '../support/pet-api/fault.ts';
import type { Answer } from '../support/operation.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';

const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

const FREE = { key: { ...PLANS.free, windows: 'sliding', tells: 'minute' } } as const;

// Visitors that no header tells apart are one.
const CARELESS: [how: string, everyMs: number, document: (turn: number) => string][] = [
  ['five times a second', 200, (turn) => pet(String(10_000 + turn))],
  ['three times a second, with pages', 333, (turn) => petsPage(idsFrom(10_000 + 3 * turn, 3))],
  ['twice a second', 500, (turn) => pet(String(10_000 + turn))],
];

test.each(chooseCases(CARELESS, 3))(
  'after two minutes of a client that comes back at once, %s, others are told 98 s at most, and then served',
  async (_how, everyMs, document) => {
    await using world = await createFailingWorld({ keys: FREE });
    const petql = await world.start({ plan: 'free' });
    const careless: Promise<Answer>[] = [];
    for (const endMs = world.nowMs + 2 * MINUTE_MS; world.nowMs < endMs; await world.pass(everyMs)) {
      careless.push(petql.ask(document(careless.length), { waitMs: 0 }));
    }
    await world.until(Promise.all(careless));

    const toldMs: number[] = [];
    const obey = async (name: number): Promise<string> => {
      const send = () => petql.ask(pet(String(20_000 + name)), { waitMs: 0 });
      const waitMs = (await send()).errors?.[0]?.extensions.retryAfterMs ?? 0;
      toldMs.push(waitMs);
      await sleep(waitMs);
      return (await send()).errors ? 'refused again' : 'served';
    };
    const results = await world.until(Promise.all(Array.from({ length: 10 }, (_, name) => obey(name))));
    expect(Math.max(...toldMs)).toBeLessThanOrEqual(98_000);
    expect(results).toEqual(results.map(() => 'served'));
  },
);

describe.each(
  chooseCases<[string, FaultRule]>(
    [
      ['hang', HANGS],
      ['take 4 s', slow(4_000)],
      ['take 2 s', slow(2_000)],
    ],
    3,
  ),
)('beside one visitor whose 50 pets %s', (_what, fault) => {
  test('the others are served within a second', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world, { maxWaitMs: 10_000 });
    const pets = idsFrom(900, 50);
    world.petApi.fault = on(pets as `${bigint}`[], fault);
    const hanging = petql.ask(petsPage(pets), { visitor: 'unlucky', ...NO_CACHE });
    await world.pass(500);
    const tookMs: number[] = [];
    for (let turn = 0; turn < 40; turn += 1) {
      const atMs = world.nowMs;
      const document = turn % 2 === 0 ? LIST : pet(String(700 + turn));
      const answer = await world.until(petql.ask(document, { visitor: `visitor ${turn % 4}`, ...NO_CACHE }));
      expect([turn, resultOf(answer)]).toEqual([turn, 'fresh']);
      tookMs.push(world.nowMs - atMs);
      await world.pass(100);
    }
    expect(tookMs.toSorted((one, other) => one - other)[37]).toBeLessThan(1_000);
    await world.until(hanging);
  });

  test('no error says that a quota is exhausted which is not', async () => {
    await using world = await createFailingWorld();
    const petql = await startProven(world);
    const pets = idsFrom(900, 100);
    world.petApi.fault = on(pets as `${bigint}`[], fault);
    const answers = [petql.ask(petsPage(pets), { ...NO_CACHE, waitMs: 1_000 })];
    await world.pass(200);
    for (let turn = 0; turn < 20; turn += 1)
      answers.push(petql.ask(pet(String(700 + turn)), { ...NO_CACHE, waitMs: 100 }));
    answers.push(petql.ask(LIST, { waitMs: 0 }));
    const given = await world.until(Promise.all(answers));
    expect((await petql.rateLimit()).minute.remaining).toBeGreaterThan(500);
    expect(JSON.stringify(given)).not.toMatch(/quota of|QUOTA_EXHAUSTED/);
  });
});
