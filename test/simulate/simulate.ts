/**
 * `npm run simulate`: a day of one API key, printed as a table and a plot, to choose a plan before paying for it. The day
 * runs on virtual time over an upstream that counts strictly.
 */
import { parseArgs } from 'node:util';
import { parsePlan, planName } from '../../src/plan.ts';
import { percentile } from '../support/percentile.ts';
import { simulateDay } from './day.ts';
import type { Day, DayOptions } from './day.ts';

const FLAGS = {
  plan: { type: 'string', default: 'free', meaning: 'free, pro, business or PER_MINUTE/PER_DAY' },
  pets: { type: 'string', default: '90', meaning: 'pets in the store; others change one a minute' },
  lists: { type: 'string', default: '4', meaning: 'lists that are queried, 4 at most: all pets, and by status' },
  ids: { type: 'string', default: '16', meaning: 'single pets that are queried' },
  'every-ms': { type: 'string', default: '1000', meaning: 'how often each of them is queried' },
  hours: { type: 'string', default: '24', meaning: 'length of the simulation' },
  'max-age-ms': { type: 'string', default: '1000', meaning: 'as for petql' },
  'max-stale-ms': { type: 'string', default: '600000', meaning: 'as for petql' },
} as const;
const USAGE = `Usage: npm run simulate -- [flags]
${Object.entries(FLAGS)
  .map(([name, { default: value, meaning }]) => `  --${name.padEnd(15)} ${meaning} (${value})\n`)
  .join('')}`;

const HOUR_MS = 3_600_000;
const COLUMNS = 72;
const BARS = ' ▁▂▃▄▅▆▇█';

try {
  const options = readOptions();
  process.stdout.write(options ? await report(options) : USAGE);
} catch (error) {
  process.stderr.write(`simulate: ${(error as Error).message.split('\n')[0]}\n${USAGE}`);
  process.exitCode = 1;
}

/** @throws Error that says which flag is wrong. */
function readOptions(): DayOptions | undefined {
  const { values } = parseArgs({ options: { ...FLAGS, help: { type: 'boolean', short: 'h' } } });
  if (values.help) return undefined;
  const numberOf = (name: Exclude<keyof typeof FLAGS, 'plan'>, min = Number.MIN_VALUE) => {
    const number = Number(values[name]);
    if (!(number >= min))
      throw new Error(`--${name} must be ${min === 0 ? 'at least' : 'over'} 0, got ${values[name]}`);
    return number;
  };
  const plan = parsePlan(values.plan);
  if (!plan) throw new Error(`--plan must be ${FLAGS.plan.meaning}, got ${values.plan}`);
  const [lists, ids] = [numberOf('lists', 0), numberOf('ids', 0)];
  if (lists + ids === 0) throw new Error('--lists or --ids must be over 0');
  return {
    plan,
    pets: numberOf('pets'),
    lists,
    ids,
    everyMs: numberOf('every-ms'),
    durationMs: numberOf('hours') * HOUR_MS,
    maxAgeMs: numberOf('max-age-ms', 0),
    maxStaleMs: numberOf('max-stale-ms', 0),
  };
}

async function report(options: DayOptions): Promise<string> {
  const { plan, everyMs, pets, durationMs } = options;
  const day = await simulateDay(options);
  const { operations, calls, refused } = day;
  const ages = operations.map(({ ageMs }) => ageMs);
  const answered = ages.filter((ageMs) => !Number.isNaN(ageMs)).length;
  const rows = {
    plan: `${planName(plan)}: ${count(plan.perMinute)} a minute, ${count(plan.perDay)} a day`,
    load: `${day.queries} queries every ${everyMs / 1000} s, over ${count(pets)} pets`,
    operations: count(operations.length),
    answered: `${count(answered)} (${percent(answered / operations.length)})`,
    calls: `${count(calls)} (${percent(calls / plan.perDay)} of the day's plan)`,
    'answers a call': count(Math.round(answered / Math.max(1, calls))),
    'refused (429)': String(refused),
    'age, median': seconds(percentile(ages, 0.5)),
    'age, 99 %': seconds(percentile(ages, 0.99)),
    'age, oldest': seconds(percentile(ages, 1)),
  };
  const lines = Object.entries(rows).map(([name, value]) => `${name.padEnd(16)}${value}\n`);
  return `${lines.join('')}\n${plot(day, durationMs)}`;
}

function plot({ operations }: Day, durationMs: number): string {
  const columns = Map.groupBy(operations, ({ startedMs }) => Math.floor((startedMs / durationMs) * COLUMNS));
  const medians = Array.from({ length: COLUMNS }, (_, column) => {
    const ages = (columns.get(column) ?? []).map(({ ageMs }) => ageMs);
    return percentile(ages, 0.5) || 0;
  });
  const highest = Math.max(1, ...medians);
  const bars = medians.map((value) => BARS[Math.ceil((value / highest) * (BARS.length - 1))]).join('');
  const hours = `${'0 h'.padEnd(COLUMNS - 4)}${durationMs / HOUR_MS} h`;
  return `median age through the day, up to ${seconds(highest)}\n${bars}\n${hours}\n`;
}

function count(value: number): string {
  return value.toLocaleString('en');
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
