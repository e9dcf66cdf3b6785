import { exchange, newLedgerState } from '../../../src/throttle/ledger-state.ts';
import type { LedgerRules } from '../../../src/throttle/ledger-state.ts';
import { simulate } from '../../throttle/simulation.ts';
import type { Journey } from '../../throttle/simulation.ts';
import { between, createRandom } from '../random.ts';
import type { Random } from '../random.ts';
import type { Findings, Scenario } from '../scenario.ts';

const DURATION_MS = 1_800_000;
const TIMEOUT_MS = 5_000;

/** Half hours of virtual time with plans, networks and clocks that chance makes up, each from a seed of its own. */
export function simulated(seeds: number): Scenario {
  return {
    name: 'simulated',
    goal: `no 429 and exact tokens in ${seeds.toLocaleString('en')} random half hours`,
    plan: 'random',
    windows: 'sliding',
    replicas: 0,
    // It holds up whatever else runs in this process.
    alone: true,
    run({ random }) {
      const first = between(random, 0, 1_000_000_000);
      const runs = Array.from({ length: seeds }, (_, index) => runOne(first + index));
      return Promise.resolve({
        arrivals: runs.reduce((sum, { arrivals }) => sum + arrivals, 0),
        refusals: runs.reduce((sum, { refusals }) => sum + refusals, 0),
        measured: `both kinds of window, 1 to 4 replicas, seeds from ${first}`,
        problems: runs.flatMap(({ problems }) => problems),
      });
    },
  };
}

function runOne(seed: number): Findings {
  const random = createRandom(seed);
  const plan = { perMinute: between(random, 1, 400), perDay: between(random, 20, 8_000) };
  const rules: LedgerRules = { plan: { ...plan, known: true }, probeMs: TIMEOUT_MS };
  const state = newLedgerState('first', rules);
  const slowest = between(random, 1, 2_400);
  const longestThought = between(random, 1, 400);
  const lost = random() * 0.2;
  const { arrivals, granted, sent, returned, unsent } = simulate({
    upstream: {
      ...plan,
      windows: pick(random, ['fixed', 'sliding']),
      tells: pick(random, ['minute', 'changing']),
      resetAs: pick(random, ['seconds', 'milliseconds', 'delta']),
    },
    upstreamAheadMs: between(random, -5_000, 5_000),
    replicasAheadMs: Array.from({ length: between(random, 1, 4) }, () => between(random, -3_600_000, 3_600_000)),
    durationMs: DURATION_MS,
    wanted: between(random, 1, 120),
    exchange: (request, nowMs) => exchange(state, request, rules, nowMs),
    journey: ({ probe }): Journey => ({
      thereMs: between(random, 0, slowest),
      backMs: between(random, 0, slowest),
      // A probe that is lost is sent again, and may then be one call too many for the smallest of these plans.
      fate: probe || random() >= lost ? 'answered' : pick(random, ['silent', 'unsent', 'vanished']),
    }),
    thinkMs: () => between(random, 0, longestThought),
    timeoutMs: TIMEOUT_MS,
  });
  const refusals = arrivals.filter(({ status }) => status !== 200).length;
  const problems: string[] = [];
  if (refusals > 0) problems.push(`seed ${seed}: ${refusals} × 429`);
  if (granted !== sent + returned + unsent) problems.push(`seed ${seed}: ${granted} granted, ${sent} sent`);
  return { arrivals: arrivals.length, refusals, problems };
}

function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[between(random, 0, choices.length - 1)] as T;
}
