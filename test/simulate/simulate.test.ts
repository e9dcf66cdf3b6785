import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { simulateDay } from '../../src/program/simulate/day.ts';
import { violationsOf } from '../support/axe.ts';
import { startBrowser } from '../support/browser.ts';
import { runPetql } from '../support/run-petql.ts';

const MAX_STALE_MS = 600_000;
const DURATION_MS = 900_000;
/** Quick: six queries every 20 s for six minutes. */
const SMALL = ['--lists', '2', '--ids', '4', '--every-ms', '20000', '--hours', '0.1'];

test('20 queries every three seconds are served within the Free plan, by data that is fresh enough', async () => {
  const load = { pets: 90, lists: 4, ids: 16, everyMs: 3_000, durationMs: DURATION_MS };
  const shares: number[] = [];
  const day = await simulateDay(PLANS.free, { ...load, maxAgeMs: 1_000, maxStaleMs: MAX_STALE_MS }, (share) => {
    shares.push(share);
  });
  expect(day.refusedCalls).toBe(0);
  expect(day.ages).toHaveLength((20 * DURATION_MS) / 3_000);
  // The age of a failed operation is NaN.
  expect(day.ages.filter((ageMs) => !(ageMs <= MAX_STALE_MS))).toHaveLength(0);
  // The share of the day that refreshes may use at once, and that of the minutes.
  expect(day.callsAtMs.length).toBeGreaterThan(100);
  expect(day.callsAtMs.length).toBeLessThan(200);
  expect(shares).toEqual(Array.from({ length: 100 }, (_, index) => index / 100));
});

test('the program compares plans in a table, names the smallest one that serves, and draws their day', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'petql-simulate-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const html = join(folder, 'plans.html');
  const { code, stdout, stderr } = await runPetql(['simulate', '--plan', 'free,1/5', ...SMALL, '--html', html]);
  expect([code, stderr.split(':')[0]]).toEqual([0, 'simulating']);
  const [load, , ...lines] = stdout.trimEnd().split('\n');
  expect(load).toBe('6 queries every 20 s for 0.1 h, over 90 pets: 108 queries');
  const cells = Object.fromEntries(lines.map((line) => line.split(/ {3,}/)).map(([title, ...plans]) => [title, plans]));
  expect(cells['plan']).toEqual(['Free', '1/5']);
  expect(cells['calls a day']).toEqual(['1,000', '5']);
  expect(cells['queries answered']).toEqual(['100.0 %', '100.0 %']);
  expect(cells['calls refused (429)']).toEqual(['0', '0']);
  expect(lines.at(-1)).toMatch(/^1\/5 serves this load; data is \d+ s old in the median \(Free: \d+(?:\.\d)? s\)\.$/);

  const page = await readFile(html, 'utf8');
  expect(page).toContain(`<h1>${lines.at(-1)}</h1>`);
  expect(page.match(/<polyline /g)).toHaveLength(4);
  // Without colors too, each curve is told by its dashes, as in its legend.
  const dashes = [...page.matchAll(/<(polyline|line) .*?stroke-dasharray: ([\d a-z]+)"/g)];
  const dashesOf = (name: string) => new Set(dashes.filter(([, shape]) => shape === name).map(([, , dash]) => dash));
  expect(dashesOf('polyline').size).toBe(2);
  expect(dashesOf('line')).toEqual(dashesOf('polyline'));
  expect(page).not.toMatch(/https?:|<script|NaN|undefined/);
  expect(await problemsOnPhones(html)).toEqual([]);
});

test.each([
  ['24', '20'],
  ['36', '40'],
])('over %s hours no day is used beyond its plan', async (hours, calls) => {
  const load = ['--lists', '1', '--ids', '0', '--every-ms', '600000', '--hours', hours];
  const { stdout } = await runPetql(['simulate', '--plan', '10/20', ...load]);
  expect(stdout).toMatch(new RegExp(`^calls made +${calls}$`, 'm'));
  expect(stdout).toMatch(/^of the day +100\.0 %$/m);
});

/** What is wrong with the page on a screen of 390 px, in both color schemes; nothing where no browser starts. */
async function problemsOnPhones(file: string): Promise<readonly string[]> {
  const browser = await startBrowser();
  if (!browser) return [];
  onTestFinished(() => browser.close());
  const problems = (['light', 'dark'] as const).map(async (colorScheme) => {
    const page = await browser.newPage({ viewport: { width: 390, height: 844 }, colorScheme });
    await page.goto(`file://${file}`);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    return [...(width === 390 ? [] : [`it is ${width} px wide`]), ...(await violationsOf(page))];
  });
  return (await Promise.all(problems)).flat();
}

test.each([
  [
    ['--plan', 'gold'],
    /^petql: --plan must be free, pro, business or PER_MINUTE\/PER_DAY, comma-separated, got gold\n$/,
  ],
  [['--hours', '0'], /^petql: --hours must be over 0, got 0\n$/],
  [['--days', '1'], /^petql: Unknown option '--days'/],
])('what is wrong ends in one clear line: %j', async (args, line) => {
  const { code, stdout, stderr } = await runPetql(['simulate', ...args]);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(line);
});

test('npm run simulate is the same', async () => {
  const { stdout } = await promisify(execFile)('npm', ['run', '--silent', 'simulate', '--', '--help']);
  expect(stdout).toContain('Usage: petql simulate');
});
