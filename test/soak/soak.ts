import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { runSoak } from './run-soak.ts';
import { tableOf } from './table.ts';

const USAGE = `Usage: npm run soak -- [options]
  --minutes N, --seconds N   how long; default 10 minutes: what a process holds is judged after some five
  --replicas N               processes of petql, 1 to 9; default 3. More than one share a Redis
  --rate N                   operations a second; default 60
  --quiet                    harm nothing
  --seed N                   what chance begins with; printed by each run
  --json FILE                write the table there too`;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean' },
      minutes: { type: 'string', default: '10' },
      seconds: { type: 'string' },
      replicas: { type: 'string', default: '3' },
      rate: { type: 'string', default: '60' },
      quiet: { type: 'boolean', default: false },
      seed: { type: 'string' },
      json: { type: 'string' },
    },
  });
  if (values.help) return print(USAGE);
  const seconds = number('seconds', values.seconds ?? String(Number(values.minutes) * 60));
  const replicas = number('replicas', values.replicas);
  const seed = number('seed', values.seed ?? String(Date.now() % 1_000_000));
  print(`seed ${seed}, ${replicas} replicas, ${seconds} s`);
  const result = await runSoak({
    seconds,
    seed,
    replicas,
    perSecond: number('rate', values.rate),
    nemesis: !values.quiet,
    onNews: print,
  });
  print(`\n${tableOf(result)}`);
  if (values.json !== undefined) await writeFile(values.json, JSON.stringify(result, undefined, 2));
  return result.tallies.every(({ broken }) => broken === 0) ? 0 : 1;
}

function number(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${name}: expected a number over 0, got ${text}`);
  return value;
}

function print(text: string): 0 {
  process.stdout.write(`${text}\n`);
  return 0;
}
