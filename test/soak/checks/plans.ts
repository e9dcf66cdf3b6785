import { checkHistory } from '../../prove/check-history.ts';
import type { Arrival } from '../../prove/history.ts';
import type { StrictPlanOptions } from '../../throttle/strict-plan.ts';
import type { Disturbance, DisturbanceKind, Disturbances } from '../disturbances.ts';
import { createTally } from '../tally.ts';
import type { Check } from './check.ts';

export interface PlanRules {
  readonly arrivals: readonly Arrival[];
  planOf(key: string): StrictPlanOptions | undefined;
  readonly disturbances: Disturbances;
  /** From the upstream's clock to the soak's. */
  soakTime(atMs: number): number;
}

/**
 * What a Redis that was emptied or killed had not written down is not known, and what goes on without it goes by shares:
 * for as long as such a window lasts, a key may meet one refusal for each time that Redis was harmed.
 */
const IN_DOUBT_MS = 75_000;
/** Calls that were under way together are refused together. */
const TOGETHER_MS = 1_000;
/** What loses the answers of calls. */
const LOSE_ANSWERS: readonly DisturbanceKind[] = ['upstream', 'frozen', 'killed'];
/** How long an answer may be on its way. */
const ON_ITS_WAY_MS = 2_000;

/** The upstream refused nothing, and where it did all the same, nobody called before its time. */
export function createPlanCheck({ arrivals, planOf, disturbances, soakTime }: PlanRules): Check {
  const kept = createTally('no call is over the plan (429)');
  const closed = createTally('after a 429 nobody calls');
  const banned = createTally('no key is banned (403)');
  /** What was added is another check's; and of a 429 whose answer may have been lost on its way, petql need not know. */
  const heard = (arrival: Arrival): Arrival => {
    const span = onItsWay(arrival);
    const lost = disturbances.touched(LOSE_ANSWERS, span);
    // Without Redis each replica finds out for itself.
    const apart = disturbances.touched(['redis'], { ...span, fromMs: span.fromMs - IN_DOUBT_MS });
    const unheard = arrival.status === 429 && (lost || apart);
    return { ...arrival, name: undefined, ...(unheard ? { status: 500 } : {}) };
  };
  const onItsWay = ({ atMs }: Pick<Arrival, 'atMs'>) => {
    return { fromMs: soakTime(atMs), untilMs: soakTime(atMs) + ON_ITS_WAY_MS };
  };
  /** Where the answer to a call may be lost, the next one that finds out is sent without having heard of it. */
  const deafUntilMs = (arrival: Pick<Arrival, 'atMs'>): number => {
    const faults = disturbances.touching(LOSE_ANSWERS, onItsWay(arrival));
    return Math.max(-Infinity, ...faults.map(({ untilMs }) => untilMs + ON_ITS_WAY_MS));
  };
  return {
    tallies: [kept, closed, banned],
    finish() {
      const byKey = Map.groupBy(arrivals, ({ key }) => key);
      for (const [key, own] of byKey) {
        const plan = planOf(key);
        const harms = disturbances.all.filter(({ kind }) => kind === 'redis');
        let togetherUntilMs = -Infinity;
        for (const { status, method, atMs: upstreamMs } of own) {
          const atMs = soakTime(upstreamMs);
          const what = `${Math.round(atMs)} ms, ${key}: ${method}`;
          if (status === 403) banned.break(`${what}; refused before it: ${refusals(own, upstreamMs)}`);
          else banned.ok();
          if (status !== 429) {
            kept.ok();
          } else if (atMs <= togetherUntilMs) {
            kept.explain();
          } else if (takeHarm(harms, atMs)) {
            togetherUntilMs = Math.max(atMs + TOGETHER_MS, deafUntilMs({ atMs: upstreamMs }));
            kept.explain();
          } else kept.break(`${what}; before it, by tenths of a minute: ${tenths(own, upstreamMs)}`);
        }
        if (!plan) continue;
        // How full the windows were is told by the 429s; here it is the calls after them.
        const rules = { windows: plan.windows, perMinute: Infinity, perDay: Infinity };
        const problems = checkHistory({ arrivals: own.map(heard), requests: [] }, rules);
        if (problems.length === 0) closed.ok();
        for (const problem of problems) closed.break(problem);
      }
      const known = [...byKey].filter(([key]) => planOf(key));
      kept.measure(known.map(([key, own]) => `${key} ${own.length}`).join(', '));
    },
  };
}

/** How long before this the last twenty 429s came, in seconds. */
function refusals(arrivals: readonly Arrival[], untilMs: number): string {
  const refused = arrivals.filter(({ status, atMs }) => status === 429 && atMs <= untilMs).slice(-20);
  return refused.map(({ atMs }) => ((untilMs - atMs) / 1_000).toFixed(2)).join(' ');
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

function takeHarm(harms: Disturbance[], atMs: number): boolean {
  const index = harms.findIndex(({ fromMs, untilMs }) => fromMs <= atMs && atMs - untilMs < IN_DOUBT_MS);
  if (index >= 0) harms.splice(index, 1);
  return index >= 0;
}
