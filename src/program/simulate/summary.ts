import { figure } from '../../common/figure.ts';
import { DAY_MS, planName } from '../../common/plan.ts';
import type { Plan } from '../../common/plan.ts';
import { percentile } from './percentile.ts';
import type { Day } from './day.ts';

/** The figures of a day. */
export interface Summary {
  readonly plan: Plan;
  readonly name: string;
  readonly operations: number;
  readonly answered: number;
  readonly calls: number;
  /** The calls of the day with most of them, for a simulation of several. */
  readonly callsOfFullestDay: number;
  readonly refusedCalls: number;
  readonly medianAgeMs: number;
  readonly oldAgeMs: number;
  readonly oldestAgeMs: number;
}

export function summaryOf({ plan, ages, callsAtMs, refusedCalls }: Day): Summary {
  const answered = ages.filter((ageMs) => !Number.isNaN(ageMs)).toSorted();
  return {
    plan,
    name: planName(plan),
    operations: ages.length,
    answered: answered.length,
    calls: callsAtMs.length,
    callsOfFullestDay: mostCallsOfADay(callsAtMs),
    refusedCalls,
    medianAgeMs: percentile(answered, 0.5),
    oldAgeMs: percentile(answered, 0.99),
    oldestAgeMs: percentile(answered, 1),
  };
}

/** The simulation begins at midnight. */
function mostCallsOfADay(callsAtMs: readonly number[]): number {
  const days = Map.groupBy(callsAtMs, (atMs) => Math.floor(atMs / DAY_MS));
  return Math.max(0, ...Array.from(days.values(), (calls) => calls.length));
}

/** Returns in one line the smallest plan that serves the load, and how fresh its data is beside that of the others. */
export function verdictOf(summaries: readonly Summary[]): string {
  const bySize = summaries.toSorted((one, other) => one.plan.perDay - other.plan.perDay);
  const serving = bySize.find(({ answered, operations }) => answered === operations);
  if (!serving) {
    const best = bySize.at(-1) as Summary;
    return `No plan here serves this load: ${best.name} answers ${percent(best.answered / best.operations)} of the queries.`;
  }

  const fresher = bySize
    .slice(bySize.indexOf(serving) + 1)
    .map(({ name, medianAgeMs }) => `${name}: ${seconds(medianAgeMs)}`);
  const others = fresher.length > 0 ? ` (${fresher.join(', ')})` : '';
  return `${serving.name} serves this load; data is ${seconds(serving.medianAgeMs)} old in the median${others}.`;
}

/** Returns a text such as "0.5 s" and "53 s". */
export function seconds(ms: number): string {
  return Number.isNaN(ms) ? 'none' : `${Number((ms / 1000).toFixed(ms < 10_000 ? 1 : 0))} s`;
}

/** Returns a text that is rounded down: with one failure it is not 100 %. */
export function percent(share: number): string {
  return `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;
}

/** Returns the rows of the table: a title, and a cell for each plan. */
export function rowsOf(summaries: readonly Summary[]): readonly (readonly [title: string, ...cells: string[]])[] {
  const row = (title: string, cell: (summary: Summary) => string) => [title, ...summaries.map(cell)] as const;
  return [
    row('plan', ({ name }) => name),
    row('calls a minute', ({ plan }) => figure(plan.perMinute)),
    row('calls a day', ({ plan }) => figure(plan.perDay)),
    row('queries answered', ({ answered, operations }) => percent(answered / operations)),
    row('calls made', ({ calls }) => figure(calls)),
    row('of the day', ({ callsOfFullestDay, plan }) => percent(callsOfFullestDay / plan.perDay)),
    row('queries per call', ({ answered, calls }) => figure(Math.round(answered / Math.max(1, calls)))),
    row('calls refused (429)', ({ refusedCalls }) => figure(refusedCalls)),
    row('age, median', ({ medianAgeMs }) => seconds(medianAgeMs)),
    row('age, 99 %', ({ oldAgeMs }) => seconds(oldAgeMs)),
    row('age, oldest', ({ oldestAgeMs }) => seconds(oldestAgeMs)),
  ];
}
