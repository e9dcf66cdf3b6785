import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { compareTraffic, tableOf } from '../verify/traffic.ts';
import { createTraffic } from '../verify/traffic/trace.ts';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
/** A figure may move by so much before README has to; 0 may not. */
const SPREAD = 0.05;
const SPREAD_OF_SECONDS = 0.2;
/** Time is virtual: a busy machine takes as long as it takes. */
const TIMEOUT_MS = 300_000;

/** The head of the table in a text, and its rows. */
function tableIn(text: string) {
  const [, head, rows = ''] = /^(\| Gateway \|.*)\n\|[-|]+\|\n((?:\|.*\n?)+)/m.exec(text) ?? [];
  const cells = rows
    .trim()
    .split('\n')
    .map((row) => row.split('|').map((cell) => cell.trim()));
  return { head, rows: cells };
}

const isFigure = (cell: string) => /^[\d,.]+(?: s)?$/.test(cell);
const figureOf = (cell: string) => Number(cell.replaceAll(/[,s ]/g, ''));
const hasUnit = (cell: string) => cell.endsWith(' s');

function isNear(measured: string, shown: string): boolean {
  const value = figureOf(measured);
  const spread = Math.max(value * SPREAD, hasUnit(measured) ? SPREAD_OF_SECONDS : 0);
  return hasUnit(measured) === hasUnit(shown) && Math.abs(value - figureOf(shown)) <= spread;
}

test(
  "README's table is what the hour of traffic gives",
  async () => {
    const measured = tableIn(tableOf(await compareTraffic(createTraffic({ seed: 1, minutes: 60 }))));
    const shown = tableIn(README);
    expect(shown.head).toBe(measured.head);
    expect(shown.rows.map(([, name]) => name)).toEqual(measured.rows.map(([, name]) => name));

    const cells = measured.rows.flatMap((row, index) =>
      row.map((cell, column) => [cell, shown.rows[index]?.[column] ?? ''] as const),
    );
    const figures = cells.filter(([cell]) => isFigure(cell));
    expect(figures).toHaveLength(19);
    expect(figures.filter(([cell, inReadme]) => !isNear(cell, inReadme))).toEqual([]);
  },
  TIMEOUT_MS,
);

test.each([
  ['0', '3'],
  ['0.1 s', '3.0 s'],
  ['5.8 s', '5.4 s'],
  ['199 s', '199'],
  ['1,376', '1,300'],
  ['194', ''],
])('a measured %s is not "%s"', (measured, shown) => {
  expect(isNear(measured, shown)).toBe(false);
});
