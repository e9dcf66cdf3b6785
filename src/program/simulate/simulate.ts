import { writeFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { figure } from '../../common/figure.ts';
import { HOUR_MS, parsePlan, planName } from '../../common/plan.ts';
import type { Plan } from '../../common/plan.ts';
import type { DayWorkerData, DayWorkerMessage } from './day-worker.ts';
import type { Day } from './day.ts';
import { MAX_LISTS, queryCount } from './load.ts';
import type { Load } from './load.ts';
import { simulationPage } from './page.ts';
import { rowsOf, seconds, summaryOf, verdictOf } from './summary.ts';

const FLAGS = {
  plan: {
    type: 'string',
    default: 'free,pro,business',
    meaning: 'free, pro, business or PER_MINUTE/PER_DAY, comma-separated',
  },
  'plan-share': { type: 'string', default: '100', meaning: 'as for petql' },
  pets: { type: 'string', default: '90', meaning: 'pets in the store' },
  lists: {
    type: 'string',
    // A constant: the ages in schema/README.md are those of the default load.
    default: '4',
    meaning: `lists that are queried, ${MAX_LISTS} at most: all pets, and by status`,
  },
  ids: { type: 'string', default: '16', meaning: 'single pets that are queried' },
  'every-ms': { type: 'string', default: '1000', meaning: 'how often each list and each pet is queried, in ms' },
  hours: { type: 'string', default: '24', meaning: 'length of the simulation' },
  'max-age-ms': { type: 'string', default: '1000', meaning: 'as for petql' },
  'max-stale-ms': { type: 'string', default: '600000', meaning: 'as for petql' },
  html: { type: 'string', meaning: 'file for a page with the age and the calls through the day' },
} as const;

export const SIMULATE_USAGE = `Usage: petql simulate [options]   a day of a load on each rate plan, on virtual time

The load is steady: it has no creates, no bursts and no visitors. An Enterprise plan is given by its limits.

${Object.entries<{ default?: string; meaning: string }>(FLAGS)
  .map(([name, { default: value, meaning }]) => `  --${name.padEnd(14)} ${meaning}${value ? ` (${value})` : ''}`)
  .join('\n')}`;

const PROGRESS_EVERY_MS = 1_000;
/** The interval where standard error is no terminal, so that each progress is a new line. */
const LOG_PROGRESS_EVERY_MS = 15_000;

interface SimulateOptions {
  readonly plans: readonly Plan[];
  readonly load: Load;
  /** The file of the page. */
  readonly html: string | undefined;
}

/**
 * Runs `petql simulate`: prints how each plan serves a load, to choose one before paying for it.
 *
 * @throws Error that says which flag is wrong.
 */
export async function simulate(args: readonly string[]): Promise<void> {
  const { plans, load, html } = readOptions(args);
  const days = await runDays(plans, load);
  const summaries = days.map(summaryOf);
  process.stdout.write(`${describeLoad(load)}\n\n${table(rowsOf(summaries))}\n${verdictOf(summaries)}\n`);
  if (html !== undefined) await writeFile(html, simulationPage(days, load.durationMs, describeLoad(load)));
}

function readOptions(args: readonly string[]): SimulateOptions {
  const { values } = parseArgs({ args: [...args], options: FLAGS });
  const numberOf = (name: Exclude<keyof typeof FLAGS, 'html' | 'plan'>, min = Number.MIN_VALUE) => {
    const number = Number(values[name]);
    if (number >= min && number < Infinity) return number;
    throw new Error(`--${name} must be ${min === 0 ? 'at least' : 'over'} 0, got ${values[name]}`);
  };

  const planShare = numberOf('plan-share');
  if (!Number.isInteger(planShare) || planShare > 100)
    throw new Error('--plan-share must be a whole number from 1 to 100');
  const [lists, ids] = [numberOf('lists', 0), numberOf('ids', 0)];
  if (lists + ids === 0) throw new Error('--lists or --ids must be over 0');
  const load = {
    pets: numberOf('pets'),
    lists,
    ids,
    planShare,
    everyMs: numberOf('every-ms'),
    durationMs: numberOf('hours') * HOUR_MS,
    maxAgeMs: numberOf('max-age-ms', 0),
    maxStaleMs: numberOf('max-stale-ms', 0),
  };
  return { plans: values.plan.split(',').map(planOf), load, html: values.html };
}

function planOf(text: string): Plan {
  const plan = text.trim() === 'auto' ? undefined : parsePlan(text.trim());
  if (!plan) throw new Error(`--plan must be ${FLAGS.plan.meaning}, got ${text}`);
  return plan;
}

/** Simulates the plans side by side, and prints their progress. */
async function runDays(plans: readonly Plan[], load: Load): Promise<readonly Day[]> {
  const shares = plans.map(() => 0);
  const { isTTY } = process.stderr;
  const show = () => {
    const parts = plans.map((plan, index) => `${planName(plan)} ${Math.round((shares[index] ?? 0) * 100)} %`);
    process.stderr.write(`${isTTY ? '\r' : ''}simulating: ${parts.join(', ')}${isTTY ? '' : '\n'}`);
  };

  show();
  const progress = setInterval(show, isTTY ? PROGRESS_EVERY_MS : LOG_PROGRESS_EVERY_MS);
  try {
    return await Promise.all(plans.map((plan, index) => runDay({ plan, load }, (share) => (shares[index] = share))));
  } finally {
    clearInterval(progress);
    if (isTTY) process.stderr.write('\r\u001b[K');
  }
}

function runDay(workerData: DayWorkerData, onProgress: (share: number) => void): Promise<Day> {
  return new Promise((resolve, reject) => {
    // The sources have another extension than the package.
    const file = new URL(`./day-worker${extname(import.meta.url)}`, import.meta.url);
    const worker = new Worker(file, { workerData });
    worker.on('message', (message: DayWorkerMessage) => {
      if (message.kind === 'progress') onProgress(message.share);
      else resolve(message.day);
    });
    worker.on('error', reject);
    worker.on('exit', () => reject(new Error('the simulation ended early')));
  });
}

function describeLoad(load: Load): string {
  const { everyMs, pets, durationMs } = load;
  const queries = queryCount(load);
  const total = figure(Math.ceil((durationMs / everyMs) * queries));
  return `${queries} queries every ${seconds(everyMs)} for ${durationMs / HOUR_MS} h, over ${figure(pets)} pets: ${total} queries`;
}

/** Returns text in columns, the first one aligned to the left. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('   '),
  );
  return `${lines.join('\n')}\n`;
}
