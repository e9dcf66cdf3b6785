import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { CONTENDERS } from './limiters/contenders.ts';
import { runJob } from './limiters/job.ts';
import type { Outcome } from './limiters/job.ts';
import { LIMITED_UPSTREAMS } from './limiters/upstreams.ts';
import type { LimitedUpstream } from './limiters/upstreams.ts';
import type { Suite } from './suite.ts';

/** README shows this one. */
const SEED = 1;
/** petql creates at most so much less than the best one that met no ban. */
const MAX_LESS = 0.02;

/** A job of 26 hours on a Free key against fifteen upstreams: petql beside what people write by hand. */
export const limiters: Suite = {
  about: 'a job on a Free key against fifteen upstreams: petql beside other limiters, on virtual time',
  seed: SEED,
  checks: LIMITED_UPSTREAMS.map((upstream) => ({
    name: upstream.name.replaceAll(' ', '-'),
    goal: `${upstream.about}: petql meets the fewest 429s and bans, and creates as much as any without a ban`,
    run: async ({ seed, print }) => {
      const outcomes = await compare(upstream, seed);
      print(lineOf(upstream, outcomes));
      return [rowFor(upstream, outcomes)];
    },
  })),
};

type Outcomes = ReadonlyMap<string, Outcome>;

async function compare(upstream: LimitedUpstream, seed: number): Promise<Outcomes> {
  const outcomes = new Map<string, Outcome>();
  for (const [name, start] of Object.entries(CONTENDERS)) outcomes.set(name, await runJob(upstream, start, { seed }));
  return outcomes;
}

function lineOf({ name }: LimitedUpstream, outcomes: Outcomes): string {
  const cells = [...outcomes.values()].map(({ created, refused, bans }) => `${created}/${refused}/${bans}`);
  return `| ${[name, ...cells].join(' | ')} |`;
}

function rowFor({ name, about }: LimitedUpstream, outcomes: Outcomes): Row {
  const [petql, ...others] = [...outcomes.values()] as [Outcome, ...Outcome[]];
  const problems: string[] = [];
  const fewest = Math.min(...others.map(({ refused }) => refused));
  if (petql.refused > fewest) problems.push(`${petql.refused} × 429, where another met ${fewest}`);
  const best = Math.max(0, ...others.filter(({ bans }) => bans === 0).map(({ created }) => created));
  if (petql.created < (1 - MAX_LESS) * best) problems.push(`${petql.created} created, where another made ${best}`);
  return rowOf({
    promise: `${name}: ${about}`,
    looked: outcomes.size,
    problems,
    measured: `${petql.created} created, ${petql.refused} × 429, ${petql.bans} bans`,
  });
}
