import { readFileSync } from 'node:fs';
import type { GuardName } from './guarded-lines.ts';
import type { Run } from './laboratory.ts';
import type { MixName } from './mixes.ts';
import type { TriggerName } from './triggers.ts';

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

/** A row of the laboratory: a trigger in a mix; `quiet` is none. */
export type RowName = `${TriggerName | 'quiet'} ${MixName}`;

/** The figures of one petql: whole, and without each guard that the trigger sets off. */
export type FiguresOf = Readonly<Partial<Record<GuardName | 'petql', Figures>>>;

export const FILE = new URL('before.json', import.meta.url);
const NAMES = ['fresh', 'stale', 'failed', 'creates', 'calls', 'told'] as const satisfies readonly (keyof Figures)[];

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
  return told > (goal.told ?? Infinity) ? [...missing, `told to return after ${told} s`] : missing;
}

/** The figures of petql before failures had their rules (commit e2f5630), which `store-figures.ts` wrote. */
export function readFiguresBefore(): ReadonlyMap<string, FiguresOf> {
  const rows = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, Record<string, readonly number[]>>;
  const figures = (values: readonly number[]) => Object.fromEntries(NAMES.map((name, index) => [name, values[index]]));
  return new Map(
    Object.entries(rows).map(([name, row]) => [
      name,
      Object.fromEntries(Object.entries(row).map(([of, values]) => [of, figures(values)])) as FiguresOf,
    ]),
  );
}

/** Returns a text with a line for each row, as `readFiguresBefore` takes it. */
export function textOf(rows: ReadonlyMap<string, FiguresOf>): string {
  const values = (figures: Figures) => NAMES.map((name) => figures[name]);
  const lines = [...rows].map(([name, row]) => {
    const entries = Object.entries(row).map(([of, figures]) => [of, values(figures)]);
    return `  ${JSON.stringify(name)}: ${JSON.stringify(Object.fromEntries(entries))}`;
  });
  return `{\n${lines.join(',\n')}\n}\n`;
}

/** One line of the table. */
export interface TableLine {
  readonly mix: MixName;
  readonly trigger: TriggerName;
  readonly petql: Figures;
  /** What petql lacks to the goal of the trigger. */
  readonly shortfalls: readonly string[];
  readonly without: Figures;
  readonly before: FiguresOf | undefined;
}

/** Returns the table of one guard, as Markdown that reads well in a terminal too. */
export function tableOf(guard: GuardName, lines: readonly TableLine[]): string {
  const head = ['trigger', 'mix', `petql: ${NAMES.join(' ')}`, `without ${guard}`, 'before', 'before, without it'];
  const rows = lines.map(({ mix, trigger, petql, without, before }) => [
    trigger,
    mix,
    ...[petql, without, before?.petql, before?.[guard]].map(cellOf),
  ]);
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n');
}

/** The figures in the order of the head, below its words. */
function cellOf(figures: Figures | undefined): string {
  return figures ? NAMES.map((name) => String(figures[name]).padStart(name.length)).join(' ') : '';
}
