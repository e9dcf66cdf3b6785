import { checkHistory } from '../../prove/check-history.ts';
import type { Arrival } from '../../prove/history.ts';
import type { StrictPlanOptions } from '../../throttle/strict-plan.ts';
import { createTally } from '../tally.ts';
import type { Check } from './check.ts';

export interface PlanRules {
  readonly arrivals: readonly Arrival[];
  planOf(key: string): StrictPlanOptions | undefined;
  /** 429s that are explained by what was done to Redis, over all keys. */
  explained(): number;
}

/** The upstream refused nothing, and where it did all the same, nobody called before its time. */
export function createPlanCheck({ arrivals, planOf, explained }: PlanRules): Check {
  const kept = createTally('no call is over the plan (429)');
  const closed = createTally('after a 429 nobody calls');
  const banned = createTally('no key is banned (403)');
  return {
    tallies: [kept, closed, banned],
    finish() {
      let allowed = explained();
      const byKey = Map.groupBy(arrivals, ({ key }) => key);
      for (const [key, own] of byKey) {
        const plan = planOf(key);
        for (const { status, method, atMs } of own) {
          if (status === 403) banned.break(`${key}: ${method} at ${new Date(atMs).toISOString()}`);
          else banned.ok();
          if (status !== 429) kept.ok();
          else if ((allowed -= 1) >= 0) kept.explain();
          else kept.break(`${key}: ${method} at ${new Date(atMs).toISOString()}`);
        }
        if (!plan) continue;
        // How full the windows were is told by the 429s; here it is the calls after them.
        const rules = { windows: plan.windows, perMinute: Infinity, perDay: Infinity };
        const problems = checkHistory({ arrivals: own.map(unnamed), requests: [] }, rules);
        if (problems.length === 0) closed.ok();
        for (const problem of problems) closed.break(problem);
      }
      kept.measure(
        [...byKey].map(([key, own]) => `${key} ${own.length}`).filter((text) => !text.startsWith('wrong')).join(', '),
      );
    },
  };
}

/** What was added is another check's. */
function unnamed(arrival: Arrival): Arrival {
  return { ...arrival, name: undefined };
}
