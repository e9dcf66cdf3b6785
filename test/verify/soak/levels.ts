import { percentile } from '../../../src/program/simulate/percentile.ts';
import { Tally } from '../../support/tally.ts';
import type { Row } from '../../support/tally.ts';

/** How much a process holds at a moment. */
export interface Level {
  /** When, in milliseconds. */
  readonly atMs: number;
  readonly fds: number;
  /** Timers, sockets and whatever else keeps Node.js busy. */
  readonly handles: number;
  readonly heapMb: number;
  readonly rssMb: number;
}

/**
 * How much more the end may hold than the level after the warm-up: a share of it, and so much besides. The level is that of calm
 * moments: `before` and `after` of the values lie below it. A leak is never freed, so that the lowest value of all has it.
 */
const BOUNDS = {
  fds: { name: 'file descriptors are flat', share: 0.2, more: 20, before: 0.1, after: 0 },
  handles: { name: 'timers and handles are flat', share: 0.3, more: 60, before: 0.1, after: 0 },
  heapMb: { name: 'the heap is flat (MB)', share: 0.25, more: 10, before: 0.1, after: 0.1 },
  rssMb: { name: 'the resident memory is flat (MB)', share: 0.2, more: 30, before: 0.5, after: 0.5 },
} as const;

/** Code is compiled and caches fill in this share of a process's life. */
const WARM_UP = 0.25;
/** Of the rest, the first and the last of so many parts are compared. */
const PARTS = 4;
const MIN_LEVELS = 20;
/** A shorter life shows nothing yet: connections come with the bursts, and V8 takes what the machine has at first. */
const MIN_LIFE_MS = 200_000;

/** Holds the end of each process's life against its level after the warm-up. */
export function checkLevels(processes: ReadonlyMap<string, readonly Level[]>): Row[] {
  return Object.entries(BOUNDS).map(([figure, { name: promise, share, more, ...percentiles }]) => {
    const row = new Tally(promise);
    for (const [name, levels] of processes) {
      const warm = levels.slice(Math.floor(levels.length * WARM_UP));
      const livedMs = (warm.at(-1)?.atMs ?? 0) - (warm[0]?.atMs ?? 0);
      if (warm.length < MIN_LEVELS || livedMs < MIN_LIFE_MS) continue;
      const length = Math.floor(warm.length / PARTS);
      const values = warm.map((level) => level[figure as keyof typeof BOUNDS]);
      const before = percentile(values.slice(0, length), percentiles.before);
      const after = percentile(values.slice(-length), percentiles.after);
      const max = before * (1 + share) + more;
      const text = `${name}: ${before.toFixed(0)} to ${after.toFixed(0)} in ${(livedMs / 60_000).toFixed(0)} min`;
      row.measured += `${row.measured && '; '}${text}`;
      row.look(after <= max ? undefined : `${text}, at most ${max.toFixed(0)} expected`);
    }
    return row;
  });
}
