import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import type { Suite } from './suite.ts';
import { KINDS, MIXED } from './upstreams/kinds.ts';
import type { Kind } from './upstreams/kinds.ts';
import { walk } from './upstreams/walk.ts';
import type { Walk, WalkOptions } from './upstreams/walk.ts';

const HOURS = 50;
const SEEDS = 16;
/** Of what an oracle gets. */
const MIN_MEDIAN_SHARE = 0.9;
const MIN_SHARE = 0.75;
const MAX_SILENT_MS = 900_000;
/** On the first day, and on each later one. */
const MAX_INCIDENTS = [10, 4] as const;
/** 429s of one incident to calls that were sent after its first one had arrived. */
const MAX_LATE = 1;
const MAX_PROBLEMS = 10;
const MINUTE_MS = 60_000;

const HEAD = [
  'kind',
  'served: median',
  'worst',
  '429s',
  'incidents: first day',
  'a later one',
  'sent after the first 429',
  'silent, min',
];

/** petql's line against upstreams that nobody imagined one by one: within pet-api.md, and somewhat beside it. */
export const upstreams: Suite = {
  about: `${SEEDS * (KINDS.length + 1)} random upstreams, ${HOURS} hours each, on virtual time`,
  checks: [...KINDS, MIXED].map((kind, index) => ({
    name: kind.name.replaceAll(/[ ,]+/g, '-'),
    goal: kind.hasNoGoal
      ? 'none: no client can do better'
      : (kind.shortfall ?? 'at least 90 % of what an oracle gets, few 429s, no silence'),
    run: async ({ seed, print }) => {
      if (index === 0) print(`${rowText(HEAD)}\n${rowText(HEAD.map(() => '---'))}`);
      const walks: [seed: number, walk: Walk][] = [];
      for (let each = SEEDS * seed; each < SEEDS * (seed + 1); each += 1) {
        walks.push([each, await walk(kind, each, { hours: HOURS })]);
      }
      print(
        lineOf(
          kind,
          walks.map(([, one]) => one),
        ),
      );
      return [judge(kind, walks)];
    },
  })),
};

/** Walks over one upstream of a kind, for some hours. Returns what is worse than it should be, but for what 429s it costs. */
export async function walkBriefly(
  kind: Kind,
  options: WalkOptions & { readonly seed: number },
): Promise<readonly string[]> {
  const one = await walk(kind, options.seed, options);
  return kind.hasNoGoal ? [] : shortageOf(one);
}

function lineOf({ name }: Kind, walks: readonly Walk[]): string {
  const shares = walks.map(shareOf).toSorted((one, other) => one - other);
  const most = (of: (walk: Walk) => number) => Math.max(0, ...walks.map(of));
  return rowText([
    name,
    percent(medianOf(shares)),
    percent(shares[0] ?? NaN),
    String(most(({ refused }) => refused)),
    String(most(({ incidents }) => incidents[0] ?? 0)),
    String(most(({ incidents }) => Math.max(0, ...incidents.slice(1)))),
    String(most(({ late }) => late)),
    String(Math.round(most(({ silentMs }) => silentMs) / MINUTE_MS)),
  ]);
}

function judge(kind: Kind, walks: readonly (readonly [seed: number, walk: Walk])[]): Row {
  const shares = walks.map(([, one]) => shareOf(one)).toSorted((one, other) => one - other);
  const median = medianOf(shares);
  const problems = walks.flatMap(([seed, one]) =>
    problemsOf(kind, one).map((problem) => `seed ${seed}: ${problem} (${one.about})`),
  );
  if (median < MIN_MEDIAN_SHARE) problems.unshift(`${percent(median)} at the median`);
  const isJudged = !kind.hasNoGoal && kind.shortfall === undefined;
  return rowOf({
    promise: `${kind.name}: petql gets what can be had`,
    looked: walks.length,
    broken: isJudged ? problems.length : 0,
    explained: kind.shortfall === undefined ? 0 : problems.length,
    problems: isJudged ? problems.slice(0, MAX_PROBLEMS) : [],
    measured: `${percent(median)} served at the median, ${percent(shares[0] ?? NaN)} at the worst`,
  });
}

function problemsOf({ maxIncidents = MAX_INCIDENTS }: Kind, one: Walk): readonly string[] {
  const problems = shortageOf(one);
  const isCostly = one.incidents.some((count, day) => count > maxIncidents[day === 0 ? 0 : 1]);
  if (isCostly) problems.push(`${one.incidents.join(', ')} incidents a day`);
  if (one.late > MAX_LATE) problems.push(`${one.late} × 429 after the first one of an incident had arrived`);
  return problems;
}

function shortageOf(one: Walk): string[] {
  const problems: string[] = [];
  if (shareOf(one) < MIN_SHARE) problems.push(`${one.served} of ${one.possible} served`);
  if (one.silentMs > MAX_SILENT_MS) problems.push(`silent for ${Math.round(one.silentMs / MINUTE_MS)} min`);
  return problems;
}

function shareOf({ served, possible }: Walk): number {
  return possible === 0 ? 1 : served / possible;
}

function medianOf(sorted: readonly number[]): number {
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? NaN)
    : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2;
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

function rowText(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
