import { checkHistory } from '../../prove/check-history.ts';
import type { Arrival } from '../../prove/history.ts';
import type { StrictPlanOptions } from '../../throttle/strict-plan.ts';
import { createTally } from '../tally.ts';
import type { Check } from './check.ts';

export interface PlanRules {
  readonly arrivals: readonly Arrival[];
  planOf(key: string): StrictPlanOptions | undefined;
  /** When Redis lost what it held, by the upstream's clock. */
  emptiedAtMs(): readonly number[];
  /** From the upstream's clock to the soak's. */
  soakTime(atMs: number): number;
}

/** What was spent of a window that no header tells of may then be lost with it, until that window has passed. */
const LOST_FOR_MS = 75_000;

/** The upstream refused nothing, and where it did all the same, nobody called before its time. */
export function createPlanCheck({ arrivals, planOf, emptiedAtMs, soakTime }: PlanRules): Check {
  const kept = createTally('no call is over the plan (429)');
  const closed = createTally('after a 429 nobody calls');
  const banned = createTally('no key is banned (403)');
  return {
    tallies: [kept, closed, banned],
    finish() {
      const byKey = Map.groupBy(arrivals, ({ key }) => key);
      for (const [key, own] of byKey) {
        const plan = planOf(key);
        // One 429 of each key, which then knows.
        const emptied = [...emptiedAtMs()];
        for (const { status, method, atMs } of own) {
          const what = `${Math.round(soakTime(atMs))} ms, ${key}: ${method}`;
          if (status === 403) banned.break(what);
          else banned.ok();
          if (status !== 429) kept.ok();
          else if (takeOne(emptied, atMs)) kept.explain();
          else kept.break(`${what}; before it, by tenths of a minute: ${tenths(own, atMs)}`);
        }
        if (!plan) continue;
        // How full the windows were is told by the 429s; here it is the calls after them.
        const rules = { windows: plan.windows, perMinute: Infinity, perDay: Infinity };
        const problems = checkHistory({ arrivals: own.map(unnamed), requests: [] }, rules);
        if (problems.length === 0) closed.ok();
        for (const problem of problems) closed.break(problem);
      }
      const known = [...byKey].filter(([key]) => planOf(key));
      kept.measure(known.map(([key, own]) => `${key} ${own.length}`).join(', '));
    },
  };
}

/** How many calls came in each tenth of the last two minutes. */
function tenths(arrivals: readonly Arrival[], untilMs: number): string {
  const counts = Array.from({ length: 20 }, () => 0);
  for (const { atMs } of arrivals) {
    const tenth = 19 - Math.floor((untilMs - atMs) / 6_000);
    if (atMs <= untilMs && tenth >= 0) counts[tenth] = (counts[tenth] ?? 0) + 1;
  }
  return counts.join(' ');
}

function takeOne(emptiedAtMs: number[], atMs: number): boolean {
  const index = emptiedAtMs.findIndex((emptied) => emptied <= atMs && atMs - emptied < LOST_FOR_MS);
  if (index >= 0) emptiedAtMs.splice(index, 1);
  return index >= 0;
}

/** What was added is another check's. */
function unnamed(arrival: Arrival): Arrival {
  return { ...arrival, name: undefined };
}
