import { FIGURE_NAMES } from './figures.ts';
import type { Figures } from './figures.ts';
import type { GuardName } from './guarded-lines.ts';
import type { MixName } from './mixes.ts';
import type { FiguresOf } from './stored-figures.ts';
import type { TriggerName } from './triggers.ts';

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
  const head = [
    'trigger',
    'mix',
    `petql: ${FIGURE_NAMES.join(' ')}`,
    `without ${guard}`,
    'before',
    'before, without it',
  ];
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
  return figures ? FIGURE_NAMES.map((name) => String(figures[name]).padStart(name.length)).join(' ') : '';
}
