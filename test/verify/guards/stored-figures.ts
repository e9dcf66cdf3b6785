import { readFileSync, writeFileSync } from 'node:fs';
import { FIGURE_NAMES } from './figures.ts';
import type { Figures } from './figures.ts';
import type { GuardName } from './guarded-lines.ts';
import type { MixName } from './mixes.ts';
import type { TriggerName } from './triggers.ts';

/** A row of the laboratory: a trigger in a mix; `quiet` is none. */
export type RowName = `${TriggerName | 'quiet'} ${MixName}`;

/** The figures of one petql: whole, and without each guard that the trigger sets off. */
export type FiguresOf = Readonly<Partial<Record<GuardName | 'petql', Figures>>>;

const FILE = new URL('before.json', import.meta.url);

/** The figures of petql before failures had their rules (commit e2f5630), which `write-figures.ts` wrote. */
export function readFiguresBefore(): ReadonlyMap<RowName, FiguresOf> {
  const rows = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, Record<string, readonly number[]>>;
  const figures = (values: readonly number[]) =>
    Object.fromEntries(FIGURE_NAMES.map((name, index) => [name, values[index]]));
  return new Map(
    Object.entries(rows).map(([name, row]) => [
      name as RowName,
      Object.fromEntries(Object.entries(row).map(([of, values]) => [of, figures(values)])) as FiguresOf,
    ]),
  );
}

/** Stores figures for `readFiguresBefore`, a line for each row. */
export function storeFigures(rows: ReadonlyMap<RowName, FiguresOf>): void {
  const values = (figures: Figures) => FIGURE_NAMES.map((name) => figures[name]);
  const lines = [...rows].map(([name, row]) => {
    const entries = Object.entries(row).map(([of, figures]) => [of, values(figures)]);
    return `  ${JSON.stringify(name)}: ${JSON.stringify(Object.fromEntries(entries))}`;
  });
  writeFileSync(FILE, `{\n${lines.join(',\n')}\n}\n`);
}
