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

const FILE = new URL('before.csv', import.meta.url);
const HEAD = ['trigger', 'mix', 'of', ...FIGURE_NAMES];

/** The figures of petql before failures had their rules (commit e2f5630), which `write-figures.ts` wrote. */
export function readFiguresBefore(): ReadonlyMap<RowName, FiguresOf> {
  const [, ...lines] = readFileSync(FILE, 'utf8').trim().split('\n');
  const rows = new Map<RowName, FiguresOf>();
  for (const line of lines) {
    const [trigger, mix, of = '', ...values] = line.split(',');
    const name = `${trigger} ${mix}` as RowName;
    const figures = Object.fromEntries(FIGURE_NAMES.map((each, index) => [each, Number(values[index])]));
    rows.set(name, { ...rows.get(name), [of]: figures });
  }
  return rows;
}

/** Stores figures for `readFiguresBefore`: those of petql, and those without each guard. */
export function storeFigures(rows: ReadonlyMap<RowName, FiguresOf>): void {
  const lines = [...rows].flatMap(([name, row]) =>
    Object.entries(row).map(([of, figures]) => [...name.split(' '), of, ...FIGURE_NAMES.map((each) => figures[each])]),
  );
  writeFileSync(FILE, [HEAD, ...lines].map((line) => `${line.join(',')}\n`).join(''));
}
