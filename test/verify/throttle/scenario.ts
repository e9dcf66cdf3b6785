import type { Plan } from '../../../src/common/plan.ts';
import { brokenPromises, usedShare } from '../../support/check.ts';
import type { Operation } from '../../support/operation.ts';
import type { PetApi } from '../../support/pet-api/pet-api.ts';
import { between, createRandom } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import { rowOf } from '../../support/tally.ts';
import { deploy } from '../deployment.ts';
import type { Deployment, DeploymentOptions } from '../deployment.ts';
import type { Check } from '../suite.ts';

export const MINUTE_MS = 60_000;

/** What a scenario works with. */
export interface Scene {
  readonly random: Random;
  /** Closed when the scenario is over. */
  readonly resources: AsyncDisposableStack;
}

export interface Findings {
  /** Calls that arrived. */
  readonly calls: number;
  readonly measured: string;
  /** Why the goal is missed, a sentence each; none when it is reached. */
  readonly problems: readonly string[];
}

/** A check that tries one scenario. Without `processes` it needs the machine alone. */
export function scenario(about: Omit<Check, 'run'>, run: (scene: Scene) => Promise<Findings>): Check {
  return {
    ...about,
    async run({ seed }) {
      await using resources = new AsyncDisposableStack();
      // So that scenarios differ under one seed.
      const hash = [...about.name].reduce((sum, letter) => Math.imul(sum, 31) + (letter.codePointAt(0) ?? 0), 0);
      const { calls, measured, problems } = await run({ random: createRandom(seed + hash), resources });
      return [rowOf({ promise: about.goal, looked: calls, problems, measured })];
    },
  };
}

export interface TrialOptions extends Omit<DeploymentOptions, 'planOf'> {
  readonly plan: Plan;
  readonly windows?: 'fixed' | 'sliding';
}

/** Longer than a window, so that clients can wait for the next one. */
const MAX_WAIT_MS = 70_000;

/** Replicas over a pet API where every key has the same plan. */
export function startTrial({ random, resources }: Scene, options: TrialOptions): Promise<Deployment> {
  const { plan, windows = 'fixed', args = [], ...more } = options;
  return deploy(resources, {
    planOf: () => ({ ...plan, windows, tells: 'minute' }),
    // So that windows of scenarios that run beside each other differ.
    aheadMs: between(random, -30_000, 30_000),
    latencyMs: [5, 40],
    args: ['--max-wait-ms', String(MAX_WAIT_MS), ...args],
    ...more,
  });
}

export interface Judged {
  readonly trial: Deployment;
  readonly operations: readonly Operation[];
  /** 429s of the plan that the goal allows. Default 0. */
  readonly maxRefusals?: number;
  /** Which share of the plan the calls of a key since then use at least. Default: not measured. */
  readonly used?: { readonly plan: Plan; readonly key: string; readonly fromMs: number; readonly atLeast: number };
  readonly measured?: string;
  /** What else is wrong. */
  readonly problems?: readonly (string | false | undefined)[];
}

/** Calls that were granted or on their way when a 429 came: half a second is one exchange with a slow Redis. */
const IN_FLIGHT_MS = 500;

/** Holds what happened against the rules that every scenario has, and its own figures. */
export function judge({ trial, operations, maxRefusals = 0, used, measured, problems = [] }: Judged): Findings {
  const { petApi, faults } = trial;
  const { log, storeOf } = petApi;
  const aheadMs = petApi.now() - performance.now();
  const faultTime = (atMs: number) => atMs - aheadMs;
  const rules = { incidents: maxRefusals, inFlightMs: IN_FLIGHT_MS, quiet: true, faults, faultTime };
  const refusals = log.filter(({ over }) => over).length;
  const own = log.filter(({ key, atMs }) => key === used?.key && atMs >= used.fromMs);
  const share = used && usedShare(own, used.plan.perMinute);
  const shown = share !== undefined && `${(share * 100).toFixed(1)} % used`;
  const found = [
    refusals > maxRefusals && `${refusals} × 429, at most ${maxRefusals} expected`,
    // Written so that a share of nothing is a problem too.
    used && !(Number(share) >= used.atLeast) && `${shown}, at least ${used.atLeast * 100} % expected`,
    ...problems,
    ...brokenPromises({ log, operations, storeOf }, rules),
  ];
  return {
    calls: log.length,
    measured: [shown, `${refusals} × 429`, measured].filter(Boolean).join(', '),
    problems: found.filter((problem) => typeof problem === 'string'),
  };
}

/** Settles at this moment of the pet API's clock. */
export async function untilUpstream(petApi: PetApi, atMs: number): Promise<void> {
  await new Promise((resolve) => void setTimeout(resolve, Math.max(0, atMs - petApi.now())));
}

/** The next whole minute of the pet API's clock that is at least a second away. */
export function nextMinute(petApi: PetApi): number {
  return Math.ceil((petApi.now() + 1_000) / MINUTE_MS) * MINUTE_MS;
}

/** An `aheadMs` of the pet API with which one of its minutes begins so long from now. */
export function aheadForMinuteIn(ms: number): number {
  return MINUTE_MS - ((Date.now() + ms) % MINUTE_MS);
}
