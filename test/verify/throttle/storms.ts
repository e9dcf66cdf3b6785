import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/common/plan.ts';
import { startLoad } from '../../support/load.ts';
import { HANGS, fails, mixed } from '../../support/pet-api/fault.ts';
import type { Fault } from '../../support/pet-api/fault.ts';
import type { LoggedCall, PetApi } from '../../support/pet-api/pet-api.ts';
import { until } from '../../support/until.ts';
import type { Check } from '../suite.ts';
import { MINUTE_MS, judge, scenario, startTrial } from './scenario.ts';

const STORM_MS = 600_000;
/** Keys whose quota is exhausted when the storm begins, and keys that are first used in it. */
const EXHAUSTED_KEYS = ['used-1', 'used-2'] as const;
const NEW_KEYS = ['new-1', 'new-2'] as const;
/** No word of the plan. */
const SILENT = { limit: undefined, remaining: undefined, reset: undefined };
/** A Retry-After that is shorter than any backoff should be. */
const REFUSES: Fault = { status: 429, told: { ...SILENT, retryAfterMs: 1_000 } };
const FAILS = fails(503, { told: SILENT });

const STORMS = [
  { name: 'storm', what: '429', max: 8, rule: REFUSES },
  {
    name: 'storm-mixed',
    what: '429 mixed with 503 and silence',
    max: 10,
    rule: mixed([
      [0.4, REFUSES],
      [0.4, FAILS],
      [0.2, HANGS],
    ]),
  },
] as const;

/** The upstream is out of order for ten minutes, and all clients go on. */
export const storms: readonly Check[] = STORMS.map(({ name, what, max, rule }) =>
  scenario(
    { name, goal: `ten minutes of ${what}: at most ${max} calls a key after its first 429`, processes: 3 },
    async (scene) => {
      const trial = await startTrial(scene, { plan: PLANS.pro, replicas: 3 });
      const { petApi, fleet } = trial;
      const start = (key: string) =>
        startLoad({ endpoints: fleet.endpoints, key, clientsPerReplica: 4, random: scene.random });
      const early = EXHAUSTED_KEYS.map(start);
      // Its calls are not the storm's: the first one that the storm meets is the next window's.
      await until(() => EXHAUSTED_KEYS.every((key) => isExhausted(petApi, key)));
      const before = petApi.log.length;
      petApi.fault = rule;
      const loads = [...early, ...NEW_KEYS.map(start)];
      await setTimeout(STORM_MS);
      await Promise.all(loads.map((load) => load.stop()));

      const stormed = Map.groupBy(petApi.log.slice(before), ({ key }) => key);
      const calls = [...EXHAUSTED_KEYS, ...NEW_KEYS].map((key) => ({ key, count: countAfter429(stormed.get(key)) }));
      const problems = calls.map(
        // Written so that a key without a 429 is a problem too.
        ({ key, count }) => !(count <= max) && `${key}: ${count} calls after its first 429, at most ${max} expected`,
      );
      const measured = `calls a key: ${calls.map(({ count }) => count).join(', ')}`;
      return judge({ trial, operations: loads.flatMap((load) => load.operations), measured, problems });
    },
  ),
);

/** Counts calls that arrived after the first 429 was answered; NaN where there was none. */
function countAfter429(calls: readonly LoggedCall[] = []): number {
  const knownAtMs = calls.find(({ status }) => status === 429)?.answeredAtMs;
  return knownAtMs === undefined ? NaN : calls.filter(({ atMs }) => atMs > knownAtMs).length;
}

/** Whether the key has used all calls of this minute, to the last response. */
function isExhausted({ log, now }: PetApi, key: string): boolean {
  const minuteMs = now() - (now() % MINUTE_MS);
  const own = log.filter((call) => call.key === key && call.atMs >= minuteMs);
  return own.length === PLANS.pro.perMinute && own.every(({ answeredAtMs }) => answeredAtMs !== undefined);
}
