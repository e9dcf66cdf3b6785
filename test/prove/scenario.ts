import { startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import type { StrictPlanOptions } from '../throttle/strict-plan.ts';
import { createRandom } from './random.ts';
import type { Random } from './random.ts';
import type { Usage } from './usage.ts';

/** One claim about petql, and how it is tried. */
export interface Scenario {
  readonly name: string;
  /** What has to hold, in words. */
  readonly goal: string;
  readonly plan: string;
  readonly windows: StrictPlanOptions['windows'];
  readonly replicas: number;
  /** Whether it measures times so short that nothing else may run beside it. Default false. */
  readonly alone?: boolean;
  run(bench: Bench): Promise<Findings>;
}

/** What a scenario works with; it is cleared away afterwards. */
export interface Bench {
  readonly random: Random;
  /** Closes it when the scenario is over, whatever happened. */
  use<T extends AsyncDisposable>(resource: T): T;
  redis(): Promise<RedisServer>;
}

export interface Findings {
  /** Calls over the span that was measured, and how many the plan allows there; undefined where that is not the point. */
  readonly usage?: Usage | undefined;
  /** Calls that arrived in all. */
  readonly arrivals: number;
  /** 429s that the upstream answered. */
  readonly refusals: number;
  /** What else was measured, in words. */
  readonly measured?: string;
  /** Why the goal is missed, a sentence each; none when it is reached. */
  readonly problems: readonly string[];
}

export interface Outcome {
  readonly scenario: Scenario;
  readonly findings: Findings;
  readonly seconds: number;
}

/** Tries a scenario; one that throws has missed its goal. */
export async function runScenario(scenario: Scenario, seed: number): Promise<Outcome> {
  const startedMs = performance.now();
  await using bench = openBench(seed + hash(scenario.name));
  const findings = await scenario.run(bench).catch((error: Error): Findings => {
    return { arrivals: 0, refusals: 0, problems: [error.stack ?? String(error)] };
  });
  return { scenario, findings, seconds: (performance.now() - startedMs) / 1000 };
}

export function openBench(seed: number): AsyncDisposable & Bench {
  const resources = new AsyncDisposableStack();
  return {
    random: createRandom(seed),
    use: (resource) => resources.use(resource),
    async redis() {
      const server = await startRedis();
      resources.defer(() => server.close());
      return server;
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** So that scenarios differ under one seed. */
function hash(text: string): number {
  let value = 0;
  for (const character of text) value = (Math.imul(value, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return value;
}
