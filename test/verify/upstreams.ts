import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import type { Suite } from './suite.ts';
import { walk } from './upstreams/walk.ts';
import type { Walk } from './upstreams/walk.ts';

const HOURS = 60;
const SEEDS = 500;
const MAX_DEAD_MS = 900_000;
/** Of an exact upstream that petql uses alone. */
const MAX_EXACT_REFUSALS = 1;
const MIN_EXACT_SHARE = 0.9;
/** Of any other. */
const MAX_REFUSALS = { hour: 1, day: 4 };
/** Of one with a limit of a second or of calls at a time, each response, in ten minutes. */
const MAX_HIDDEN_REFUSALS = 30;

/** petql's count against upstreams that nobody imagined one by one: within pet-api.md, and somewhat beside it. */
export const upstreams: Suite = {
  about: `${SEEDS} random upstreams, ${HOURS} hours each`,
  checks: [
    {
      name: 'exact',
      goal: 'at most one 429, 90 % used, and never dead for 15 min',
      run: async ({ seed }) => [rowFor('exact', seed, SEEDS)],
    },
    {
      name: 'odd',
      goal: 'at most one 429 an hour and four a day, and never dead for 15 min',
      run: async ({ seed }) => [rowFor('odd', seed, SEEDS)],
    },
    {
      name: 'hidden',
      goal: 'at most 30 429s in ten minutes, and never dead for 15 min',
      run: async ({ seed }) => [rowFor('hidden', seed, SEEDS)],
    },
  ],
};

/** Walks over the upstreams of one kind among so many seeds. */
export function rowFor(kind: Walk['kind'], seed: number, seeds: number): Row {
  const walks = Array.from({ length: seeds }, (_, index) => seed * 1_000 + index)
    .map((each) => ({ each, ended: walk(each, HOURS, kind) }))
    .filter(({ ended }) => ended !== undefined) as { each: number; ended: Walk }[];
  const problems = walks.flatMap(({ each, ended }) =>
    problemsOf(ended).map((problem) => `seed ${each}: ${problem} (${ended.about})`),
  );
  const broken = new Set(problems.map((problem) => problem.split(':')[0])).size;
  return rowOf({
    promise: `upstreams that are ${kind} cost little`,
    looked: walks.length,
    broken,
    problems: problems.slice(0, 10),
    measured: `${broken} of ${walks.length} missed the goal`,
  });
}

/** Returns what is worse than the goals. */
export function problemsOf({ deadMs, kind, refusals, refusedCalls, usedShare }: Walk): string[] {
  const problems: string[] = [];
  if (deadMs > MAX_DEAD_MS) problems.push(`dead for ${Math.round(deadMs / 60_000)} min`);
  if (kind === 'hidden' && refusedCalls > MAX_HIDDEN_REFUSALS) problems.push(`${refusedCalls} × 429 in ten minutes`);
  if (kind === 'odd' && refusals.hour > MAX_REFUSALS.hour) problems.push(`${refusals.hour} × 429 in an hour`);
  if (kind === 'odd' && refusals.day > MAX_REFUSALS.day) problems.push(`${refusals.day} × 429 in a day`);
  if (kind === 'exact' && refusals.all > MAX_EXACT_REFUSALS) problems.push(`${refusals.all} × 429`);
  if (kind === 'exact' && usedShare < MIN_EXACT_SHARE) problems.push(`${Math.round(usedShare * 100)} % used`);
  return problems;
}
