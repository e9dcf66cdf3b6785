/**
 * `npm run siege`: a petql process under attack from all sides, one after the other and all at once. It prints how it fares
 * and ends with exit code 1 where a goal is missed.
 */
import { parseArgs } from 'node:util';
import { ATTACKS } from './attacks.ts';
import { siege } from './siege.ts';

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '20' },
    attack: { type: 'string', multiple: true },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

const USAGE = `Usage: npm run siege -- [flags]
  --connections N   silent ones, and as many slow ones (default 10000; mind \`ulimit -n\`)
  --seconds N       how long each attack lasts (default 20)
  --attack NAME     this one alone; may stand more than once (default: each alone, and all of them at once)`;

/** The goals, with every answer to the good caller. */
const DELAY_P99_MS = 50;
/** Whoever asks more seldom has shown nothing. */
const LONGEST_PAUSE_MS = 500;
const RESIDENT_MEGABYTES = 700;

/** Attacks that keep a processor busy are made by few. */
const FEW = 20;
const CROWDS: ReadonlySet<string> = new Set(['silent connections', 'slow headers', 'slow bodies']);

if (values.help) process.stdout.write(`${USAGE}\n`);
else process.exitCode = await main();

async function main(): Promise<number> {
  const connections = Number(values.connections);
  const durationMs = Number(values.seconds) * 1_000;
  const names = Object.keys(ATTACKS) as (keyof typeof ATTACKS)[];
  const unknown = values.attack?.find((name) => !(name in ATTACKS));
  if (unknown !== undefined) throw new Error(`--attack: expected one of "${names.join('", "')}", got "${unknown}"`);
  const chosen = names.filter((name) => values.attack?.includes(name) ?? true);
  const alone = chosen.map((name) => [name, { [name]: CROWDS.has(name) ? connections : FEW }] as const);
  const together = Object.fromEntries(names.map((name) => [name, CROWDS.has(name) ? Math.floor(connections / 3) : 4]));
  let missed = false;
  row(['attack', 'connections', 'delay p99', 'longest', 'good answers', 'slowest', 'heap', 'resident']);
  for (const [name, attacks] of values.attack ? alone : [...alone, ['all at once', together] as const]) {
    const fared = await siege({ attacks, durationMs });
    const { delayP99Ms, delayMaxMs, asked, answered, slowestMs, heapMegabytes, residentMegabytes } = fared;
    row([
      name,
      Object.values(attacks)
        .reduce((sum, count) => sum + count, 0)
        .toLocaleString('en'),
      `${delayP99Ms.toFixed(1)} ms`,
      `${delayMaxMs.toFixed(0)} ms`,
      `${answered} of ${asked}`,
      `${slowestMs.toFixed(0)} ms`,
      `${heapMegabytes.toFixed(0)} MB`,
      `${residentMegabytes.toFixed(0)} MB`,
    ]);
    const few = asked < durationMs / LONGEST_PAUSE_MS;
    if (few || delayP99Ms >= DELAY_P99_MS || answered < asked || residentMegabytes > RESIDENT_MEGABYTES) missed = true;
  }
  if (missed) process.stdout.write('a goal was missed\n');
  return missed ? 1 : 0;
}

function row(cells: readonly string[]): void {
  process.stdout.write(`${cells.map((cell, index) => (index === 0 ? cell.padEnd(34) : cell.padStart(14))).join('')}\n`);
}
