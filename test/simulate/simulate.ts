/**
 * `npm run simulate`: a day of one API key, printed as a table and a plot, to choose a plan before paying for it. The day
 * runs on virtual time over an upstream that counts strictly.
 */
import { parseArgs } from 'node:util';
import { PLANS, parsePlan, planName } from '../../src/plan.ts';
import { mixedQueries, simulateDay, steadyLoad } from './day.ts';
import type { DayResult } from './day.ts';
import { percentile } from '../support/percentile.ts';

const { values } = parseArgs({
  options: {
    plan: { type: 'string', default: 'free' },
    animals: { type: 'string', default: '90' },
    sharedLists: { type: 'string', default: '4' },
    ids: { type: 'string', default: '16' },
    'every-ms': { type: 'string', default: '1000' },
    hours: { type: 'string', default: '24' },
    'max-age-ms': { type: 'string', default: '1000' },
    'max-stale-ms': { type: 'string', default: '600000' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

const USAGE = `Usage: npm run simulate -- [flags]
  --plan PLAN          free, pro, business or PER_MINUTE/PER_DAY (default free)
  --animals N          how many animals are in the store; others change one a minute (default 90)
  --sharedLists N         sharedLists that are asked for, up to 4: all, and by status (default 4)
  --ids N              single animals that are asked for (default 16)
  --every-ms MS        how often each of them is asked for (default 1000)
  --hours N            how long it lasts (default 24)
  --max-age-ms MS, --max-stale-ms MS   as for petql (default 1000, 600000)`;

const HOUR_MS = 3_600_000;
const COLUMNS = 72;
const BARS = ' ▁▂▃▄▅▆▇█';

if (values.help) process.stdout.write(`${USAGE}\n`);
else await main();

async function main(): Promise<void> {
  const plan = parsePlan(values.plan) ?? PLANS.free;
  const [animals, sharedLists, ids, everyMs] = [values.animals, values.sharedLists, values.ids, values['every-ms']].map(
    Number,
  ) as [number, number, number, number];
  const durationMs = Number(values.hours) * HOUR_MS;
  const freshness = { maxAgeMs: Number(values['max-age-ms']), maxStaleMs: Number(values['max-stale-ms']) };
  if (!parsePlan(values.plan) || [animals, sharedLists + ids, everyMs, durationMs].some((value) => !(value > 0))) {
    process.stderr.write(`simulate: a flag is wrong\n${USAGE}\n`);
    process.exitCode = 1;
    return;
  }
  const load = steadyLoad(mixedQueries(sharedLists, ids, animals), everyMs);
  const day = await simulateDay({ plan, pets: animals, durationMs, load, ...freshness });
  const answered = day.operations - day.failed;
  const rows: [string, string][] = [
    [
      'plan',
      `${planName(plan)}: ${plan.perMinute.toLocaleString('en')} a minute, ${plan.perDay.toLocaleString('en')} a day`,
    ],
    ['asked', `${load.length} queries every ${everyMs / 1000} s, over ${animals.toLocaleString('en')} animals`],
    ['operations', day.operations.toLocaleString('en')],
    ['answered', `${answered.toLocaleString('en')} (${percent(answered / day.operations)})`],
    ['calls', `${day.calls.toLocaleString('en')} (${percent(day.calls / plan.perDay)} of the day's plan)`],
    ['answers a call', Math.round(answered / Math.max(1, day.calls)).toLocaleString('en')],
    ['refused (429)', String(day.refused)],
    ['age, median', age(day, 0.5)],
    ['age, 99 %', age(day, 0.99)],
    ['age, oldest', age(day, 1)],
  ];
  const lines = rows.map(([name, value]) => `${name.padEnd(16)}${value}`);
  const { bars, highest } = plot(day, durationMs);
  process.stdout.write(
    `${lines.join('\n')}\n\nmedian age through the day, up to ${seconds(highest)}\n${bars}\n` +
      `${'0 h'.padEnd(COLUMNS - 4)}${values.hours} h\n`,
  );
}

function plot({ agesMs, startedAtMs }: DayResult, durationMs: number): { bars: string; highest: number } {
  const columns: number[][] = Array.from({ length: COLUMNS }, () => []);
  for (const [operation, ageMs] of agesMs.entries()) {
    columns[Math.min(COLUMNS - 1, Math.floor(((startedAtMs[operation] ?? 0) / durationMs) * COLUMNS))]?.push(ageMs);
  }
  const medians = columns.map((ages) => percentile(ages, 0.5) || 0);
  const highest = Math.max(1, ...medians);
  return { bars: medians.map((value) => BARS[Math.ceil((value / highest) * (BARS.length - 1))]).join(''), highest };
}

function age({ agesMs }: DayResult, share: number): string {
  return seconds(percentile(agesMs, share));
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
