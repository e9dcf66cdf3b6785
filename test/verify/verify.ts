/** `npm run verify`: the long proofs of petql's promises, behind one command. */
import { writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { bench } from './bench.ts';
import { boxes } from './boxes.ts';
import { engine } from './engine.ts';
import { explore, replayFile } from './explore.ts';
import { files } from './files.ts';
import { fuzz } from './fuzz.ts';
import { growth } from './growth.ts';
import { guards } from './guards.ts';
import { limiters } from './limiters.ts';
import { kills, mutants } from './mutants.ts';
import { oracle } from './oracle.ts';
import { prism } from './prism.ts';
import { siege } from './siege.ts';
import { smoke } from './smoke.ts';
import { soak } from './soak.ts';
import type { Check, Suite } from './suite.ts';
import { throttle } from './throttle.ts';
import { traffic } from './traffic.ts';
import { upstreams } from './upstreams.ts';

const SUITES: Readonly<Record<string, Suite>> = {
  smoke,
  throttle,
  soak,
  fuzz,
  siege,
  oracle,
  explore,
  upstreams,
  guards,
  traffic,
  limiters,
  bench,
  growth,
  mutants,
  kills,
  files,
  engine,
  boxes,
  prism,
};

const USAGE = `Usage: npm run verify -- SUITE [options]

${Object.entries(SUITES)
  .map(([name, { about, minutes }]) => `  ${name.padEnd(15)} ${about}${minutes ? ` (--minutes ${minutes})` : ''}\n`)
  .join('')}
  --list          print the names and goals of the checks, run none
  --only NAME,…   run the checks whose names start with NAME
  --seed N        repeat a run; each run prints its seed
  --minutes N     length of each check
  --json FILE     write the results to FILE
  --beside WHAT,… with bench and growth: rivals, or folders of other checkouts
  --replay FILE   with explore: run the trace in FILE again
`;

const FLAGS = {
  help: { type: 'boolean', short: 'h' },
  list: { type: 'boolean' },
  only: { type: 'string' },
  seed: { type: 'string' },
  minutes: { type: 'string' },
  json: { type: 'string' },
  beside: { type: 'string' },
  replay: { type: 'string' },
} as const;

/** Processes at a time: more would measure the machine. */
const MAX_PROCESSES = 33;
/** How long one takes to start. Checks start one after the other, so that running ones keep their processor. */
const START_MS = 1_500;
const MAX_PROBLEMS = 10;

interface Run {
  readonly checks: readonly Check[];
  readonly seed: number;
  readonly minutes: number;
  readonly beside: readonly string[] | undefined;
  /** The command that repeats one check of this run. */
  readonly repeat: (check: Check) => string;
}

interface Result {
  readonly check: string;
  readonly goal: string;
  readonly ok: boolean;
  readonly seconds: number;
  readonly repeat: string;
  readonly rows: readonly Row[];
}

process.exitCode = await main();

async function main(): Promise<number> {
  let command: ReturnType<typeof readCommand>;
  try {
    command = readCommand();
  } catch (error) {
    process.stderr.write(`verify: ${(error as Error).message.split(/\. |\n/)[0]}; see --help\n`);
    return 2;
  }
  const { run, list, json, trace } = command;
  if (trace !== undefined) return replayTrace(trace);
  if (!run) return print(USAGE);
  if (list) return print(run.checks.map(({ name, goal }) => `${name.padEnd(32)} ${goal}`).join('\n'));
  print(`seed ${run.seed}`);
  const results = await runAll(run);
  print(`\n${tableOf(results)}`);
  if (json !== undefined) await writeFile(json, JSON.stringify({ seed: run.seed, results }, undefined, 2));
  return results.every(({ ok }) => ok) ? 0 : 1;
}

async function replayTrace(file: string): Promise<number> {
  const problems = await replayFile(file, print);
  print(problems.length === 0 ? 'no rule is broken' : problems.join('\n'));
  return problems.length === 0 ? 0 : 1;
}

/** @throws Error that says in one line what is wrong with the arguments. */
function readCommand(): {
  readonly run?: Run;
  readonly list?: boolean | undefined;
  readonly json?: string | undefined;
  /** The file of a trace to run again. */
  readonly trace?: string | undefined;
} {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: FLAGS });
  if (values.help) return {};
  const name = positionals.join(' ');
  if (name === 'explore' && values.replay !== undefined) return { trace: values.replay };
  const suite = SUITES[name];
  if (!suite) throw new Error(`expected one of ${Object.keys(SUITES).join(', ')}, got "${name}"`);
  const seed = Number(values.seed ?? suite.seed ?? Date.now() % 1_000_000);
  if (!Number.isSafeInteger(seed) || seed < 0) throw new Error(`--seed must be a whole number, got ${values.seed}`);
  if (values.minutes !== undefined && suite.minutes === undefined) throw new Error(`${name} has no --minutes`);
  const minutes = Number(values.minutes ?? suite.minutes ?? 0);
  if (!(minutes > 0) && suite.minutes) throw new Error(`--minutes must be over 0, got ${values.minutes}`);
  const prefixes = values.only?.split(',');
  const checks = suite.checks.filter((check) =>
    prefixes ? prefixes.some((prefix) => check.name.startsWith(prefix)) : !check.onRequest,
  );
  if (checks.length === 0) throw new Error(`--only must name checks of --list, got ${values.only}`);
  const length = values.minutes === undefined ? '' : ` --minutes ${minutes}`;
  const repeat = (check: Check) => `npm run verify -- ${name} --only ${check.name} --seed ${seed}${length}`;
  return {
    run: { checks, seed, minutes, beside: values.beside?.split(','), repeat },
    list: values.list,
    json: values.json,
  };
}

/** Checks that need the machine alone run first, then the others beside each other, as many as fit. */
async function runAll(run: Run): Promise<Result[]> {
  const results = new Map<Check, Result>();
  const start = async (check: Check) => void results.set(check, await runOne(check, run));
  for (const check of run.checks.filter(({ processes }) => !processes)) await start(check);
  const running = new Map<Check, Promise<void>>();
  for (const check of run.checks.filter(({ processes }) => processes)) {
    while (running.size > 0 && processesOf([...running.keys(), check]) > MAX_PROCESSES) {
      await Promise.race(running.values());
    }
    running.set(
      check,
      start(check).finally(() => running.delete(check)),
    );
    await setTimeout(START_MS * processesOf([check]));
  }
  await Promise.all(running.values());
  return run.checks.flatMap((check) => results.get(check) ?? []);
}

function processesOf(checks: readonly Check[]): number {
  return checks.reduce((sum, { processes = 0 }) => sum + processes, 0);
}

/** Never rejects: a check that throws is broken. */
async function runOne(check: Check, run: Run): Promise<Result> {
  const startedMs = performance.now();
  const rows = await check
    .run({ ...run, print })
    .catch((error: Error) => [
      rowOf({ promise: check.goal, looked: 0, problems: [error.stack ?? String(error)], measured: '' }),
    ]);
  const { name, goal } = check;
  const ok = rows.every(({ broken }) => broken === 0);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  const repeat = run.repeat(check);
  print(`${ok ? 'ok    ' : 'BROKEN'} ${name} (${seconds} s) ${rows.length === 1 ? rows[0]?.measured : ''}`);
  for (const { promise, broken, problems } of rows.filter((row) => row.broken > 0)) {
    print(`       ${promise}: broken ${broken} times`);
    for (const problem of problems.slice(0, MAX_PROBLEMS)) print(`       ${problem}`);
  }
  if (!ok) print(`       repeat: ${repeat}`);
  return { check: name, goal, ok, seconds, repeat, rows };
}

/** As Markdown, which reads well in a terminal too. */
function tableOf(results: readonly Result[]): string {
  const titles = ['check', 'promise', 'looked at', 'explained', 'broken', 'measured'];
  const lines = results.flatMap(({ check, rows }) =>
    rows.map(({ promise, looked, explained, broken, measured }) => {
      const isUnseen = looked === 0 && broken === 0;
      return [check, promise, looked, explained, isUnseen ? 'not looked at' : broken, measured].map(String);
    }),
  );
  const widths = titles.map((title, column) =>
    Math.max(title.length, ...lines.map((line) => line[column]?.length ?? 0)),
  );
  const text = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [text(titles), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...lines.map(text)].join('\n');
}

function print(text: string): 0 {
  process.stdout.write(`${text}\n`);
  return 0;
}
