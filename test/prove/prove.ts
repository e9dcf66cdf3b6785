import { writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { runScenario } from './scenario.ts';
import type { Outcome, Scenario } from './scenario.ts';
import { scenariosWith } from './scenarios.ts';
import { versusNaive } from './scenarios/versus-naive.ts';
import { rowOf, tableOf } from './table.ts';

const USAGE = `Usage: npm run prove -- [options]
  --list             name the scenarios and their goals, and run nothing
  --only NAME,NAME   run those whose names begin so
  --versus naive     run a small saturation, by petql and by Bottleneck's documented recipe, and nothing else
  --seed N           what chance begins with; printed by each run
  --seeds N          how many random half hours are simulated; default 200
  --json FILE        write the table there too`;

/** Processes of petql at a time: more would measure the machine. */
const MOST_REPLICAS = 33;
/** How long one takes to start. One after the other, so that those that run already are not kept from it. */
const START_MS = 1_500;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean' },
      list: { type: 'boolean' },
      only: { type: 'string' },
      versus: { type: 'string' },
      seed: { type: 'string' },
      seeds: { type: 'string' },
      json: { type: 'string' },
    },
  });
  if (values.help) return print(USAGE);
  if (values.versus !== undefined && values.versus !== 'naive') {
    throw new Error(`--versus: expected naive, got ${values.versus}`);
  }
  const chosen = choose(
    values.versus ? versusNaive : scenariosWith({ seeds: Number(values.seeds ?? 200) }),
    values.only?.split(','),
  );
  if (values.list) return print(chosen.map(({ name, goal }) => `${name.padEnd(32)} ${goal}`).join('\n'));
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  print(`seed ${seed}, ${chosen.length} scenarios`);
  const rows = (await runAll(chosen, seed)).map(rowOf);
  print(`\n${tableOf(rows)}`);
  if (values.json !== undefined) await writeFile(values.json, JSON.stringify({ seed, rows }, undefined, 2));
  return rows.every(({ ok }) => ok) ? 0 : 1;
}

function choose(scenarios: readonly Scenario[], prefixes: readonly string[] | undefined): readonly Scenario[] {
  const chosen = prefixes
    ? scenarios.filter(({ name }) => prefixes.some((prefix) => name.startsWith(prefix)))
    : scenarios;
  if (chosen.length === 0) throw new Error(`--only: expected names out of --list, got ${prefixes?.join(',')}`);
  return chosen;
}

/** What needs the machine for itself goes first; the others then run beside each other, as many as fit. */
async function runAll(scenarios: readonly Scenario[], seed: number): Promise<Outcome[]> {
  const outcomes = new Map<Scenario, Outcome>();
  const run = async (scenario: Scenario) => {
    const outcome = await runScenario(scenario, seed);
    outcomes.set(scenario, outcome);
    const { ok, measured, problems, seconds } = rowOf(outcome);
    print(`${ok ? 'ok    ' : 'MISSED'} ${scenario.name} (${seconds} s) ${measured}`);
    for (const problem of problems.slice(0, 10)) print(`       ${problem}`);
  };
  for (const scenario of scenarios.filter(({ alone }) => alone)) await run(scenario);
  const waiting = scenarios.filter(({ alone }) => !alone);
  const running = new Set<Promise<void>>();
  let replicas = 0;
  while (waiting.length > 0 || running.size > 0) {
    const [next] = waiting;
    if (next && (replicas === 0 || replicas + next.replicas <= MOST_REPLICAS)) {
      waiting.shift();
      replicas += next.replicas;
      const done = run(next).finally(() => {
        replicas -= next.replicas;
        running.delete(done);
      });
      running.add(done);
      await setTimeout(START_MS * next.replicas);
    } else {
      await Promise.race(running);
    }
  }
  return scenarios.flatMap((scenario) => outcomes.get(scenario) ?? []);
}

function print(text: string): 0 {
  process.stdout.write(`${text}\n`);
  return 0;
}
