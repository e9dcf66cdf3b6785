import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { brokenPromises } from '../support/check.ts';
import type { Answer } from '../support/operation.ts';
import { createWorld } from '../support/world.ts';
import type { OperationOptions, Petql, World } from '../support/world.ts';

const START = '2026-11-21T09:41:20Z';
const SECOND_MS = 1_000;

interface Plan {
  readonly perMinute: number;
  readonly perDay: number;
}

function createPlanWorld({ perMinute, perDay }: Plan, startsAt = START): Promise<World> {
  const key = { perMinute, perDay, windows: 'sliding', tells: 'changing' } as const;
  return createWorld({ seed: 31, startsAt, keys: { key } });
}

let lastId = 1_000_000;

/** Reads pets that nobody has read before: no cache has them, and each costs a call. */
function readNew(petql: Petql, count: number, visitor: string, options: OperationOptions = {}): Promise<Answer> {
  const ids = Array.from({ length: count }, () => String((lastId += 1)));
  return petql.ask('query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', { visitor, ...options, variables: { ids } });
}

/** How many operations got all that they wanted. */
function servedIn(answers: readonly Answer[]): number {
  return answers.filter(({ errors = [] }) => errors.length === 0).length;
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

describe('beside a greedy visitor, each read of five honest ones is served', () => {
  const cases = [
    { name: 'of 10 unknown ids a second', plan: PLANS.pro, ids: 1, everyMs: 100 },
    { name: 'of 100 unknown ids a second', plan: PLANS.pro, ids: 100, everyMs: SECOND_MS },
    {
      name: 'of 100 unknown ids a second, on Free',
      plan: PLANS.free,
      ids: 100,
      everyMs: SECOND_MS,
      honestEveryMs: 3_000,
    },
  ];
  test.each(cases)('$name', async ({ plan, ids, everyMs, honestEveryMs = SECOND_MS }) => {
    await using world = await createPlanWorld(plan);
    const petql = await startWarm(world, plan);
    const forMs = 80 * SECOND_MS;
    const greedy = repeat(world, { everyMs, forMs }, () => readNew(petql, ids, 'greedy'));
    const honest = repeat(world, { everyMs: honestEveryMs, forMs }, (turn) => readNew(petql, 1, `honest ${turn % 5}`));
    const answers = await world.until(honest);
    await world.until(greedy);
    expect(servedIn(answers)).toBe(answers.length);
    expect(brokenPromises(world.history())).toEqual([]);
  });
});
