import type { Descriptors } from '../descriptors.ts';
import { createTally } from '../tally.ts';
import type { Check } from './check.ts';

/** How much a process holds at a moment. */
export interface Level {
  /** When, in milliseconds. */
  readonly atMs: number;
  readonly fds: number;
  /** What these are for. */
  readonly descriptors?: Descriptors;
  /** Timers, sockets and whatever else keeps Node.js busy. */
  readonly handles: number;
  readonly heapMb: number;
  readonly rssMb: number;
}

/** How much more the end may hold than the level after the warm-up: a share of it, and so much besides. */
const BOUNDS = {
  fds: { share: 0.2, more: 20 },
  handles: { share: 0.3, more: 60 },
  heapMb: { share: 0.25, more: 10 },
  rssMb: { share: 0.2, more: 30 },
} as const;
const NAMES = {
  fds: 'file descriptors are flat',
  handles: 'timers and handles are flat',
  heapMb: 'the heap is flat (MB)',
  rssMb: 'the resident memory is flat (MB)',
} as const;
type Figure = keyof typeof BOUNDS;

/**
 * The level of calm moments: while the service or Redis is harmed, requests wait and hold their sockets, and of the heap, what
 * lies above it is not collected yet. Of the resident memory, the median.
 */
const AFTER_WARM_UP = { fds: 0.1, handles: 0.1, heapMb: 0.1, rssMb: 0.5 } as const;
/** A leak is never let go of, so that the lowest look of all has it; a harm may last for most of the looks. */
const AT_THE_END = { ...AFTER_WARM_UP, fds: 0, handles: 0 } as const;

/** Code is compiled and caches fill in this share of a process's life. */
const WARM_UP = 0.25;
/** Of the rest, the first and the last of so many parts are compared. */
const PARTS = 4;
const FEWEST = 20;
/** Of a shorter life they say nothing yet: connections come with the bursts, and V8 takes what the machine has at first. */
const SHORTEST_MS = 200_000;

/** Holds the end of a process's life against its level after the warm-up. */
export function createLevelCheck(processes: () => readonly { name: string; levels: readonly Level[] }[]): Check {
  const tallies = { fds: tally('fds'), handles: tally('handles'), heapMb: tally('heapMb'), rssMb: tally('rssMb') };
  return {
    tallies: Object.values(tallies),
    finish() {
      for (const { name, levels } of processes()) {
        const warm = levels.slice(Math.floor(levels.length * WARM_UP));
        if (warm.length < FEWEST) continue;
        for (const figure of Object.keys(tallies) as Figure[]) judge(figure, name, warm);
      }
    },
  };

  function judge(figure: Figure, name: string, warm: readonly Level[]): void {
    if ((warm.at(-1)?.atMs ?? 0) - (warm[0]?.atMs ?? 0) < SHORTEST_MS) return;
    const length = Math.floor(warm.length / PARTS);
    const before = levelOf(figure, warm.slice(0, length), AFTER_WARM_UP[figure]);
    const after = levelOf(figure, warm.slice(-length), AT_THE_END[figure]);
    const { share, more } = BOUNDS[figure];
    const most = before * (1 + share) + more;
    const slope = slopeOf(figure, warm);
    const kinds = figure === 'fds' ? kindsOf(warm.at(-1)?.descriptors) : '';
    const text = `${name}: ${before.toFixed(0)} to ${after.toFixed(0)}, ${slope.toFixed(1)}/h${kinds}`;
    const told = tallies[figure];
    told.measure(told.measured ? `${told.measured}; ${text}` : text);
    if (after <= most) told.ok();
    else told.break(`${text}, at most ${most.toFixed(0)} expected`);
  }

  function tally(figure: Figure) {
    return createTally(NAMES[figure]);
  }
}

/** What is below as large a share of the values. */
function levelOf(figure: Figure, levels: readonly Level[], share: number): number {
  const values = levels.map((level) => level[figure]).toSorted((one, other) => one - other);
  return values[Math.floor(values.length * share)] ?? 0;
}

function kindsOf(descriptors: Descriptors | undefined): string {
  if (!descriptors) return '';
  const kinds = Object.entries(descriptors).map(([kind, count]) => `${kind} ${count}`);
  return ` (at last ${kinds.join(', ')})`;
}

/** The least squares' line, per hour. */
function slopeOf(figure: Figure, levels: readonly Level[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const hours = levels.map(({ atMs }) => atMs / 3_600_000);
  const values = levels.map((level) => level[figure]);
  const [hour, value] = [mean(hours), mean(values)];
  const above = hours.reduce((sum, at, index) => sum + (at - hour) * ((values[index] ?? 0) - value), 0);
  const below = hours.reduce((sum, at) => sum + (at - hour) ** 2, 0);
  return below === 0 ? 0 : above / below;
}
