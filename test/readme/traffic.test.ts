import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { compareTraffic, driveThroughPetql, tableOf } from '../verify/traffic.ts';
import { createTraffic } from '../verify/traffic/trace.ts';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
/** With the gateways that petql is compared with: in `verify traffic`. */
const IS_WHOLE = process.env['PETQL_ALL_CASES'] !== undefined;
/** The figures may move by so much before README has to. */
const SPREAD = 0.05;
const SPREAD_OF_ONE = 3;
/** Time is virtual: a busy machine takes as long as it takes. */
const TIMEOUT_MS = 300_000;

/** The rows of the table in a text, below its head. */
function rowsOf(text: string): string[][] {
  const [, rows = ''] = /\n?\| Gateway \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)/.exec(text) ?? [];
  return rows
    .trim()
    .split('\n')
    .map((row) => row.split('|').map((cell) => cell.trim()));
}

const isFigure = (cell: string) => /^[\d,.]+(?: s)?$/.test(cell);
const figureOf = (cell: string) => Number(cell.replaceAll(/[,s ]/g, ''));

test(
  "README's table is what the hour of traffic gives",
  async () => {
    const traffic = createTraffic({ seed: 1, minutes: 60 });
    const results = IS_WHOLE ? await compareTraffic(traffic) : [await driveThroughPetql(traffic)];
    const measured = rowsOf(tableOf(results));
    const shown = rowsOf(README).filter(([, name]) => IS_WHOLE || !name?.startsWith('Yoga'));
    expect(shown.map(([, name]) => name)).toEqual(measured.map(([, name]) => name));

    const cells = measured.flatMap((row, index) =>
      row.map((cell, column) => [cell, shown[index]?.[column] ?? ''] as const),
    );
    const figures = cells.filter(([cell]) => isFigure(cell));
    expect(figures).toHaveLength(IS_WHOLE ? 19 : 9);
    const wrong = figures.filter(([cell, inReadme]) => {
      const value = figureOf(cell);
      const difference = Math.abs(value - figureOf(inReadme));
      return !(difference <= Math.max(value * SPREAD, value < 100 ? SPREAD_OF_ONE : 0));
    });
    expect(wrong).toEqual([]);
  },
  TIMEOUT_MS,
);
