import { percentile } from '../../../src/program/simulate/percentile.ts';
import type { Run } from './laboratory.ts';

/** What the honest clients got, and what it took. */
export interface Figures {
  /** Reads by their result. */
  readonly fresh: number;
  readonly stale: number;
  readonly failed: number;
  /** Pets that were created. */
  readonly creates: number;
  /** Calls with the keys of honest clients. */
  readonly calls: number;
  /** The longest time after which a refused client was to return, in seconds. */
  readonly told: number;
}

export const FIGURE_NAMES = [
  'fresh',
  'stale',
  'failed',
  'creates',
  'calls',
  'told',
] as const satisfies readonly (keyof Figures)[];

export function figuresOf({ reads, creates, calls, maxToldMs }: Run): Figures {
  const count = (wanted: string) => reads.filter(({ result }) => result === wanted).length;
  return {
    fresh: count('fresh'),
    stale: count('stale'),
    failed: count('failed'),
    creates,
    calls,
    told: Math.round(maxToldMs / 1_000),
  };
}

/** What honest clients get at least, as shares of what they want: fresh reads, reads with any data, and creates. */
export interface Goal {
  readonly fresh?: number;
  readonly served?: number;
  readonly creates?: number;
  /** At most, in seconds. */
  readonly told?: number;
  /** The time within which 95 of 100 reads end, in milliseconds. */
  readonly p95Ms?: number;
}

/** Returns what is missing to the goal, a text each. */
export function shortfallsOf(ended: Run, goal: Goal): string[] {
  const { fresh, stale, creates, told } = figuresOf(ended);
  const wantedCreates = ended.creates + ended.uncreated;
  const wanted = { fresh: ended.reads.length, served: ended.reads.length, creates: wantedCreates };
  const got = { fresh, served: fresh + stale, creates };
  const missing = (['fresh', 'served', 'creates'] as const).flatMap((name) => {
    const least = Math.floor((goal[name] ?? 0) * wanted[name]);
    return got[name] >= least ? [] : [`${name}: ${got[name]} of ${wanted[name]}, where ${least} are due`];
  });
  const waitsMs = ended.reads.map(({ atMs, endedAtMs }) => endedAtMs - atMs);
  const p95Ms = percentile(waitsMs, 0.95);
  if (told > (goal.told ?? Infinity)) missing.push(`told to return after ${told} s, where ${goal.told} are due`);
  if (p95Ms > (goal.p95Ms ?? Infinity)) missing.push(`p95: ${p95Ms} ms, where ${goal.p95Ms} are due`);
  return missing;
}
