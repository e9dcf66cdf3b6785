import { expect, test } from 'vitest';
import { HOUR_MS } from '../../src/common/plan.ts';
import type { Day } from '../../src/program/simulate/day.ts';
import { simulationPage } from '../../src/program/simulate/page.ts';
import { violationsOf } from '../support/axe.ts';
import { startBrowser } from '../support/browser.ts';

/** A day on a plan of so many calls an hour. */
function dayOf(perHour: number): Day {
  return {
    plan: { perMinute: perHour, perDay: 24 * perHour },
    ages: Float64Array.from({ length: 960 }, (_, index) => 1_000 + (index % 7) * perHour),
    callsAtMs: Array.from({ length: 24 * perHour }, (_, index) => (index * HOUR_MS) / perHour),
    refusedCalls: 0,
  };
}

const PAGE = simulationPage([4, 8, 16, 32, 64, 128].map(dayOf), 24 * HOUR_MS, 'Some load.');

test('no two plans have the same dashes or the same color and dashes, as in the legend', () => {
  const strokes = (shape: string) =>
    [...PAGE.matchAll(new RegExp(`<${shape} [^>]*style="(.*?)"`, 'g'))].map(([, style]) => style);
  expect(strokes('polyline')).toEqual(strokes('line'));
  const [ages, calls] = [strokes('polyline').slice(0, 6), strokes('polyline').slice(6)];
  expect(calls).toEqual(ages);
  expect(new Set(ages.map((style) => style?.split(';')[1])).size).toBe(6);
});

test('axe-core finds nothing, and in forced colors the curves and their legend can be seen', async ({ skip }) => {
  const browser = await startBrowser();
  if (!browser) return skip('no browser starts on this machine');
  try {
    const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
    await page.setContent(PAGE);
    for (const look of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { forcedColors: 'active' }] as const) {
      await page.emulateMedia({ colorScheme: null, forcedColors: null, ...look });
      expect(await violationsOf(page)).toEqual([]);
    }
    const colors = await page.evaluate(() => {
      const strokes = [...document.querySelectorAll('polyline, line')].map((shape) => getComputedStyle(shape).stroke);
      return [...new Set(strokes), getComputedStyle(document.body).color];
    });
    expect(new Set(colors).size).toBe(1);
  } finally {
    await browser.close();
  }
});
