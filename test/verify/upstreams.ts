import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import type { Check, Suite } from './suite.ts';
import { walk } from './upstreams/walk.ts';
import type { Walk } from './upstreams/walk.ts';

const HOURS = 60;
const SEEDS = 500;
const MAX_DEAD_MS = 900_000;
/** Of an exact upstream that petql uses alone. */
const MAX_EXACT_REFUSALS = 1;
const MIN_EXACT_SHARE = 0.9;
/** Of any other. */
const MAX_REFUSALS = { hour: 5, day: 10 };
/** Of one with a limit of a second or of calls at a time, each response, in ten minutes. */
const MAX_HIDDEN_REFUSALS = 30;
/** How many upstreams may cost more 429s than that: those that are odd in several ways at once. */
const MAX_COSTLY_SHARE = { exact: 0, odd: 0.08, hidden: 0.2 };
/** Of few upstreams, whatever their share. */
const MAX_COSTLY = { exact: 0, odd: 2, hidden: 1 };
const MAX_PROBLEMS = 10;

type Kind = Walk['kind'];

/** petql's count against upstreams that nobody imagined one by one: within pet-api.md, and somewhat beside it. */
export const upstreams: Suite = {
  about: `${SEEDS} random upstreams, ${HOURS} hours each, on virtual time`,
  checks: [
    check('exact', 'at most one 429, 90 % used'),
    check('odd', 'of 92 %, at most five 429s an hour and ten a day'),
    check('hidden', 'of 80 %, at most 30 429s in ten minutes'),
  ],
};

function check(kind: Kind, goal: string): Check {
  return {
    name: kind,
    goal: `${goal}, and no key stopped for over 15 min`,
    run: async ({ seed }) => [rowFor(kind, { firstSeed: seed * 1_000, seeds: SEEDS })],
  };
}

/** Walks over the upstreams of one kind among so many seeds. */
export function rowFor(kind: Kind, { firstSeed, seeds }: { firstSeed: number; seeds: number }): Row {
  let looked = 0;
  const stopped: string[] = [];
  const costly: string[] = [];
  for (let seed = firstSeed; seed < firstSeed + seeds; seed += 1) {
    const ended = walk(seed, HOURS, kind);
    if (!ended) continue;
    looked += 1;
    const minutes = Math.round(ended.deadMs / 60_000);
    if (ended.deadMs > MAX_DEAD_MS) stopped.push(`seed ${seed}: stopped for ${minutes} min (${ended.about})`);
    const cost = costOf(ended);
    if (cost !== undefined) costly.push(`seed ${seed}: ${cost} (${ended.about})`);
  }

  const mayCost = Math.max(MAX_COSTLY[kind], Math.floor(MAX_COSTLY_SHARE[kind] * looked));
  const problems = costly.length > mayCost ? [...stopped, ...costly] : stopped;
  return rowOf({
    promise: `upstreams that are ${kind} cost little`,
    looked,
    explained: costly.length > mayCost ? 0 : costly.length,
    broken: problems.length,
    problems: problems.slice(0, MAX_PROBLEMS),
    measured: `${stopped.length} stopped, ${costly.length} too costly`,
  });
}

/** Returns what is more than an upstream of its kind should cost. */
function costOf({ kind, refusals, refusedCalls, usedShare }: Walk): string | undefined {
  if (kind === 'hidden') {
    return refusedCalls > MAX_HIDDEN_REFUSALS ? `${refusedCalls} × 429 in ten minutes` : undefined;
  }
  if (kind === 'exact') {
    if (usedShare < MIN_EXACT_SHARE) return `${Math.round(usedShare * 100)} % used`;
    return refusals.all > MAX_EXACT_REFUSALS ? `${refusals.all} × 429` : undefined;
  }
  const isCostly = refusals.hour > MAX_REFUSALS.hour || refusals.day > MAX_REFUSALS.day;
  return isCostly ? `${refusals.hour} × 429 in an hour, ${refusals.day} in a day` : undefined;
}
