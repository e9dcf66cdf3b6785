import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startProcess, untilListening } from './bench-process.ts';
import type { BenchProcess } from './bench-process.ts';
import { buildPetql } from './build-petql.ts';
import { BASELINES, CONTESTANTS, takesPart } from './contestants.ts';
import type { Contestant } from './contestants.ts';
import { measureGrowth } from './growth.ts';
import { installPeers } from './install-peers.ts';
import { load } from './load.ts';
import { measure, requestOf } from './measure.ts';
import type { Sample } from './measure.ts';
import { coldStartTable, growthPlots, resultTable } from './report.ts';
import { spread } from './statistics.ts';
import type { Spread } from './statistics.ts';
import { WORKLOADS } from './workloads.ts';
import type { Workload } from './workloads.ts';

/** One contestant with one workload and so many connections. */
export interface Result {
  readonly workload: string;
  readonly connections: number;
  readonly contestant: string;
  readonly figures: Readonly<Record<keyof Sample, Spread>>;
  /** Operations per second as a share of each baseline's in the same round. */
  readonly ratios: Readonly<Record<string, Spread>>;
}

const HELP = `npm run bench -- [options]

  --quick               one round trip of everything: 3 rounds of 0.5 s, 64 connections
  --rounds N            rounds (5)
  --duration-ms N       how long each contestant is measured in a round (1000)
  --connections A,B     connections (1,64,256)
  --only TEXT[,TEXT]    contestants whose names hold one of these; the constant body always takes part
  --workloads A,B       ${WORKLOADS.map(({ name }) => name).join(', ')}
  --no-growth           leave out how the cost grows
  --json FILE           write all figures down
`;

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    'duration-ms': { type: 'string' },
    connections: { type: 'string' },
    only: { type: 'string' },
    workloads: { type: 'string' },
    growth: { type: 'boolean', default: true },
    json: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
  allowNegative: true,
});

const UPSTREAM = fileURLToPath(new URL('upstream.ts', import.meta.url));
const [MEASURED_CORE, OTHER_CORE] = cores();

if (options.help) say(HELP);
else await main();

async function main(): Promise<void> {
  installPeers(say);
  buildPetql();
  pinThisProcess();
  const rounds = Number(options.rounds ?? (options.quick ? 3 : 5));
  const durationMs = Number(options['duration-ms'] ?? (options.quick ? 500 : 1_000));
  const connections = list(options.connections ?? (options.quick ? '64' : '1,64,256')).map(Number);
  const contestants = CONTESTANTS.filter(({ name }, index) => index === 0 || isWanted(name));
  const workloads = WORKLOADS.filter(({ name }) => !options.workloads || list(options.workloads).includes(name));
  const upstream = await startProcess({ program: UPSTREAM, env: { ANIMALS: '90' }, core: OTHER_CORE });
  const largeStore = await startProcess({ program: UPSTREAM, env: { ANIMALS: '400' }, core: OTHER_CORE });
  await untilListening(upstream.port);
  await untilListening(largeStore.port);

  say(
    `${rounds} rounds of ${durationMs} ms; Node ${process.version}; ` +
      (MEASURED_CORE === undefined
        ? 'no core of its own for what is measured\n'
        : `each contestant on core ${MEASURED_CORE}, load and upstream on core ${OTHER_CORE}\n`),
  );
  const coldStarts = await measureColdStarts(contestants, upstream, Math.min(rounds, 5));
  say(coldStartTable(coldStarts));

  const results: Result[] = [];
  const running = await startAll(contestants, largeStore);
  for (const workload of workloads) {
    await prepare(running, workload);
    for (const count of connections) {
      const measured = await measureRounds({
        running,
        upstream: largeStore,
        workload,
        connections: count,
        rounds,
        durationMs,
      });
      results.push(...measured);
      say(resultTable(workload, count, measured));
      writeDown({ coldStarts, results });
    }
  }
  await Promise.all([...running.values()].map((contestant) => contestant.stop()));

  const growth = options.growth
    ? await measureGrowth({ upstream: largeStore, core: MEASURED_CORE, durationMs, rounds })
    : [];
  if (growth.length > 0) say(growthPlots(growth));
  await upstream.stop();
  await largeStore.stop();
  writeDown({ coldStarts, results, growth });

  /** As it goes, so that what was measured is kept whatever comes. */
  function writeDown(figures: object): void {
    if (options.json === undefined) return;
    writeFileSync(options.json, JSON.stringify({ node: process.version, rounds, durationMs, ...figures }, null, 2));
  }
}

type Running = ReadonlyMap<Contestant, BenchProcess>;

async function startAll(contestants: readonly Contestant[], upstream: BenchProcess): Promise<Running> {
  const running = new Map<Contestant, BenchProcess>();
  for (const contestant of contestants) {
    const started = await start(contestant, upstream);
    await untilListening(started.port);
    running.set(contestant, started);
  }
  return running;
}

function start({ program, args, env }: Contestant, upstream: BenchProcess): Promise<BenchProcess> {
  const url = `http://127.0.0.1:${upstream.port}/v1`;
  return startProcess({
    program,
    args: args ?? [],
    env: { UPSTREAM_URL: url, PET_API_URL: url, ...env },
    core: MEASURED_CORE,
  });
}

/** From the start of the process to its first answer of a list of 20. */
async function measureColdStarts(contestants: readonly Contestant[], upstream: BenchProcess, rounds: number) {
  const [workload] = WORKLOADS;
  const tookMs = new Map<string, number[]>(contestants.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const contestant of contestants) {
      const startMs = performance.now();
      const started = await start(contestant, upstream);
      await untilListening(started.port);
      const request = requestOf(contestant, workload as Workload, 'caller');
      await load({ port: started.port, connections: 1, durationMs: 0, request: () => request });
      tookMs.get(contestant.name)?.push(performance.now() - startMs);
      await started.stop();
    }
  }
  return [...tookMs].map(([name, values]) => ({ contestant: name, ms: spread(values) }));
}

/** Warms everybody up, and gives the constant body its length: that of petql's answer. */
async function prepare(running: Running, workload: Workload): Promise<void> {
  const petql = [...running.keys()].find(({ name }) => name === 'petql');
  const bodyOf = async (contestant: Contestant, durationMs: number) => {
    const { port } = running.get(contestant) as BenchProcess;
    const request = requestOf(contestant, workload, 'caller');
    return (await load({ port, connections: 8, durationMs, request: () => request })).body;
  };
  if (petql) {
    const body = await bodyOf(petql, 0);
    for (const [{ speaks }, contestant] of running) {
      if (speaks === 'constant') await contestant.ask({ kind: 'body', body });
    }
  }
  for (const contestant of running.keys())
    if (takesPart(contestant, workload)) await bodyOf(contestant, options.quick ? 500 : 1_500);
}

interface RoundsOptions {
  readonly running: Running;
  readonly upstream: BenchProcess;
  readonly workload: Workload;
  readonly connections: number;
  readonly rounds: number;
  readonly durationMs: number;
}

/** One after the other in every round, so that whatever else the machine does meets all of them. */
async function measureRounds(rounds: RoundsOptions): Promise<Result[]> {
  const { running, workload, connections } = rounds;
  const contestants = [...running].filter(([contestant]) => takesPart(contestant, workload));
  const samples = new Map<string, Map<number, Sample>>(contestants.map(([{ name }]) => [name, new Map()]));
  for (let round = 0; round < rounds.rounds; round += 1) {
    for (const [contestant, started] of contestants) {
      const sample = await measure({ ...rounds, contestant, process: started }).catch(whereItIsNotPetql(contestant));
      if (sample) samples.get(contestant.name)?.set(round, sample);
    }
  }
  return [...samples]
    .filter(([, taken]) => taken.size > 0)
    .map(([contestant, taken]) => ({
      workload: workload.name,
      connections,
      contestant,
      figures: figuresOf([...taken.values()]),
      ratios: Object.fromEntries(
        BASELINES.filter((name) => samples.has(name)).map((name) => [
          name,
          ratio(taken, samples.get(name) ?? NO_SAMPLES),
        ]),
      ),
    }));
}

const NO_SAMPLES: ReadonlyMap<number, Sample> = new Map();

/** Others may break under a load: that round is lost to them. */
function whereItIsNotPetql({ name }: Contestant): (error: Error) => undefined {
  return (error) => {
    if (name.startsWith('petql')) throw error;
    say(`${name} failed: ${error.message.slice(0, 200)}`);
  };
}

function figuresOf(samples: readonly Sample[]): Result['figures'] {
  const names = Object.keys(samples[0] ?? {}) as (keyof Sample)[];
  const figures = names.map((name) => [name, spread(samples.map((sample) => sample[name]))]);
  return Object.fromEntries(figures) as Result['figures'];
}

/** Of the rounds that both have. */
function ratio(samples: ReadonlyMap<number, Sample>, baseline: ReadonlyMap<number, Sample>): Spread {
  return spread(
    [...samples].flatMap(([round, { operationsPerSecond }]) => {
      const base = baseline.get(round);
      return base ? operationsPerSecond / base.operationsPerSecond : [];
    }),
  );
}

function isWanted(name: string): boolean {
  return !options.only || list(options.only).some((text) => name.toLowerCase().includes(text.toLowerCase()));
}

function list(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}

/** One for what is measured and one for the rest, where the machine has two and can pin. */
function cores(): [number, number] | [undefined, undefined] {
  const pins = spawnSync('taskset', ['-c', '1', 'true']).status === 0;
  return pins && availableParallelism() > 1 ? [1, 0] : [undefined, undefined];
}

function pinThisProcess(): void {
  if (OTHER_CORE !== undefined) spawnSync('taskset', ['-a', '-cp', String(OTHER_CORE), String(process.pid)]);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
