import { createRandom } from '../support/random.ts';
import { Tally, rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { fewestCalls } from './oracle/fewest-calls.ts';
import { replay } from './oracle/replay.ts';
import { createTrace } from './oracle/trace.ts';
import type { LoadOptions } from './oracle/trace.ts';
import type { Check, Suite } from './suite.ts';

type Load = Omit<LoadOptions, 'seed'>;

/** petql's calls may be so many times the fewest: on these loads, and on any others of 500 reads or more. */
const MAX_RATIO = 1.05;
const MAX_RATIO_OF_OTHERS = 1.1;
const MAX_AGE_MS = 1_000;
const OTHERS = 10;
/** What a gateway that has seen nothing of a store may cost more: to learn what each list shows. */
const MAX_FIRST_CALLS = 8;

/** By then it has met every list. */
const FIRST_OPERATIONS = 200;

/** How many operations a load has, by how many come in a second. */
const RATES = new Map([
  [0.5, 600],
  [2, 1_000],
  [10, 1_500],
  [50, 2_500],
]);

const LOADS: readonly Load[] = [
  ...[20, 90].flatMap((pets) => [...rated({ pets, ids: 'uniform', shape: 'single' }), ...extrasOf(pets)]),
  ...(['uniform', 'listed'] as const).flatMap((ids) =>
    (['single', 'page'] as const).flatMap((shape) => rated({ pets: 1_000, ids, shape })),
  ),
  ...[0.05, 0.2, 1].map((createsPerSecond) => atTen({ pets: 1_000, ids: 'listed', shape: 'single', createsPerSecond })),
];

/** petql against somebody who knows the future: how few calls could answer the same reads as fresh and as soon? */
export const oracle: Suite = {
  about: 'calls against the fewest that anybody could make',
  seed: 1,
  checks: [
    ...LOADS.map((load): Check => {
      const goal = `at most ${MAX_RATIO} × the fewest calls`;
      return { name: nameOf(load), goal, run: async ({ seed }) => [await compare(load, seed, MAX_RATIO)] };
    }),
    {
      name: 'first-contact',
      goal: `at most ${MAX_FIRST_CALLS} calls more than where each list was seen before`,
      run: async ({ seed }) => [await compareFirst(LOADS, seed)],
    },
    ...Array.from({ length: OTHERS }, (_, index): Check => {
      const goal = `at most ${MAX_RATIO_OF_OTHERS} × the fewest calls`;
      const run = async ({ seed }: { readonly seed: number }) => {
        const own = seed * OTHERS + index;
        return [await compare(anyLoad(own), own, MAX_RATIO_OF_OTHERS)];
      };
      return { name: `other-${index + 1}`, goal, run };
    }),
  ],
};

/** Calls of petql and the fewest, on one load. */
async function compare(load: Load, seed: number, maxRatio: number): Promise<Row> {
  const trace = createTrace({ ...load, seed });
  const { calls, createdAtMs, problems } = await replay(trace, MAX_AGE_MS);
  const fewest = await fewestCalls(trace, createdAtMs, MAX_AGE_MS);
  const ratio = calls / fewest;
  const reads = trace.operations.reduce((sum, operation) => sum + operation.reads.length, 0);
  const measured = `${ratio.toFixed(3)}: ${calls} calls, ${fewest} are the fewest, for ${reads} reads`;
  const tooMany = ratio > maxRatio ? [`${nameOf(load)}: ${measured}`] : [];
  return rowOf({
    promise: `at most ${maxRatio} × the fewest calls`,
    looked: reads,
    problems: [...problems, ...tooMany],
    measured,
    figures: { calls, fewest, reads },
  });
}

/** A small store, and two loads on a large one. */
export async function compareBriefly(seed: number, operations: number): Promise<Row[]> {
  const briefly = { operations, operationsPerSecond: 10 };
  const loads: readonly Load[] = [
    { pets: 90, ids: 'uniform', shape: 'page', createsPerSecond: 0.05, ...briefly },
    { pets: 1_000, ids: 'listed', shape: 'single', ...briefly },
    { pets: 1_000, ids: 'listed', shape: 'page', ...briefly },
  ];
  const rows: Row[] = [];
  for (const load of loads) rows.push(await compare(load, seed, MAX_RATIO));
  return rows;
}

/** What it costs on each load to have seen nothing before. */
async function compareFirst(loads: readonly Load[], seed: number): Promise<Row> {
  const promise = `at most ${MAX_FIRST_CALLS} calls more than where each list was seen before`;
  const tally = new Tally(promise);
  let most = 0;
  for (const load of loads) {
    const trace = createTrace({ ...load, operations: FIRST_OPERATIONS, seed });
    const known = await replay(trace, MAX_AGE_MS);
    const unknown = await replay(trace, MAX_AGE_MS, true);
    const more = unknown.calls - known.calls;
    most = Math.max(most, more);
    tally.look(more > MAX_FIRST_CALLS ? `${nameOf(load)}: ${more} more` : undefined);
  }
  tally.measured = `at most ${most} more`;
  return tally;
}

function rated(load: Pick<Load, 'ids' | 'pets' | 'shape'>): Load[] {
  return [...RATES].map(([operationsPerSecond, operations]) => ({ ...load, operationsPerSecond, operations }));
}

function atTen(load: Pick<Load, 'createsPerSecond' | 'ids' | 'pets' | 'shape'>): Load {
  return { ...load, operationsPerSecond: 10, operations: RATES.get(10) ?? 0 };
}

/** Small stores, which one list shows whole: few creates, so that they stay small. */
function extrasOf(pets: number): Load[] {
  return [
    atTen({ pets, ids: 'uniform', shape: 'page' }),
    atTen({ pets, ids: 'uniform', shape: 'single', createsPerSecond: 0.05 }),
  ];
}

/** Any load of 500 reads or more. */
function anyLoad(seed: number): Load {
  const random = createRandom(seed);
  const logUniform = (low: number, high: number) => low * (high / low) ** random();
  const round = (value: number) => Number(value.toPrecision(2));
  return {
    pets: Math.round(logUniform(5, 3_000)),
    ids: random() < 0.5 ? 'uniform' : 'listed',
    shape: random() < 0.5 ? 'single' : 'page',
    operationsPerSecond: round(logUniform(0.3, 60)),
    operations: Math.round(500 + random() * 1_000),
    createsPerSecond: random() < 0.5 ? 0 : round(logUniform(0.01, 0.5)),
  };
}

function nameOf({ pets, ids, shape, operationsPerSecond, createsPerSecond = 0 }: Load): string {
  const creates = createsPerSecond > 0 ? `-creates-${createsPerSecond}/s` : '';
  return `${pets}-${ids}-${shape}-${operationsPerSecond}/s${creates}`;
}
