import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { load } from './bench/load.ts';
import { createPetApi } from '../support/pet-api.ts';
import type { PetApiServer } from '../support/pet-api.ts';
import { createPetStore } from '../support/pet-store.ts';
import { UNLIMITED } from '../support/strict-plan.ts';
import { PETS, WORKLOADS } from './bench/workloads.ts';
import type { Workload } from './bench/workloads.ts';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import type { Check, CheckOptions, Suite } from './suite.ts';

export const bench: Suite = {
  about: 'CPU time beside plain graphql-yoga and node:http, with the goals',
  minutes: 0.3,
  checks: WORKLOADS.map((workload): Check => {
    const { name, work, rival, maxRatio } = workload;
    const goal = `${work}: at most ${maxRatio.toFixed(2)} × the CPU time of ${rival}`;
    return { name, goal, run: async (options) => [await compare(workload, goal, options)] };
  }),
};

const CONNECTIONS = 64;
const ROUND_MS = 500;
const WARM_UP_MS = 1_500;
const MIN_ROUNDS = 3;

async function compare(workload: Workload, goal: string, { minutes }: CheckOptions): Promise<Row> {
  const { maxRatio, cold } = workload;
  buildPetql();
  await using resources = new AsyncDisposableStack();
  const store = createPetStore({ size: PETS });
  const petApi = createPetApi({ planOf: () => UNLIMITED, storeOf: () => store });
  const upstream = resources.use(await petApi.listen());
  const [petql, rival] = await (cold ? coldSides(workload, upstream) : warmSides(workload, upstream, resources));
  const rounds: { readonly petql: Sample; readonly rival: Sample; readonly calls: number }[] = [];
  const endMs = performance.now() + minutes * 60_000;
  // In turn, so that other work on the machine meets both.
  while (rounds.length < MIN_ROUNDS || performance.now() < endMs) {
    petApi.log.length = 0;
    const own = await petql();
    const calls = petApi.log.length / own.operations;
    rounds.push({ petql: own, rival: await rival(), calls });
  }
  const middle = (figureOf: (round: (typeof rounds)[number]) => number) => median(rounds.map(figureOf));
  const ratio = middle((round) => round.petql.cpuMicros / round.rival.cpuMicros);
  const throughput = middle((round) => round.petql.perSecond / round.rival.perSecond);
  const own = middle((round) => round.petql.cpuMicros);
  const other = middle((round) => round.rival.cpuMicros);
  return rowOf({
    promise: goal,
    looked: rounds.length,
    problems: ratio > maxRatio ? [`the ratio is ${ratio.toFixed(2)}, more than ${maxRatio.toFixed(2)}`] : [],
    measured:
      `CPU × ${ratio.toFixed(2)} (${textOf(own)} and ${textOf(other)}), throughput × ${throughput.toFixed(2)}, ` +
      `${middle(({ calls }) => calls).toFixed(2)} calls an operation`,
    figures: rounds,
  });
}

/** What one side did in one round. */
interface Sample {
  readonly operations: number;
  /** CPU time of an operation, of all threads of the process. */
  readonly cpuMicros: number;
  readonly perSecond: number;
}

type Sides = readonly [petql: () => Promise<Sample>, rival: () => Promise<Sample>];

/** Two processes that serve all rounds. */
async function warmSides(workload: Workload, upstream: PetApiServer, resources: AsyncDisposableStack): Promise<Sides> {
  const { requests, rival, connections = CONNECTIONS } = workload;
  const petql = resources.use(await startPetql(workload, upstream));
  const { body } = await load({ port: petql.port, connections: 1, durationMs: 0, requests });
  const rivals = {
    'one key': () => startPetql(workload, upstream),
    yoga: () => startServer(YOGA, upstream),
    bare: () => startServer(BARE, upstream, { env: { BODY: body } }),
  };
  const other = resources.use(await rivals[rival]());
  const runOf = (server: Server, sent: readonly Buffer[]) => async (durationMs: number) => {
    const before = await server.cpuMicros();
    const { operations, seconds } = await load({ port: server.port, connections, durationMs, requests: sent });
    const cpuMicros = ((await server.cpuMicros()) - before) / operations;
    return { operations, cpuMicros, perSecond: operations / seconds };
  };
  const runs = [runOf(petql, requests), runOf(other, rival === 'one key' ? requests.slice(0, 1) : requests)] as const;
  for (const run of runs) {
    // Each request once at least: what is cached is cached then.
    for (let sent = 0; sent < requests.length;) sent += (await run(WARM_UP_MS)).operations;
  }
  return [() => runs[0](ROUND_MS), () => runs[1](ROUND_MS)];
}

/** A process for each round, which answers once. */
async function coldSides(workload: Workload, upstream: PetApiServer): Promise<Sides> {
  const runOf = (start: () => Promise<Server>) => async () => {
    const startMs = performance.now();
    await using server = await start();
    await load({ port: server.port, connections: 1, durationMs: 0, requests: workload.requests });
    const seconds = (performance.now() - startMs) / 1_000;
    return { operations: 1, cpuMicros: await server.cpuMicros(), perSecond: 1 / seconds };
  };
  return [runOf(() => startPetql(workload, upstream)), runOf(() => startServer(YOGA, upstream))];
}

const SERVERS = join(import.meta.dirname, 'bench');
const BARE = join(SERVERS, 'bare.mjs');
const YOGA = join(SERVERS, 'yoga.mjs');
const ROOT = join(import.meta.dirname, '../..');

interface Server extends AsyncDisposable {
  readonly port: number;
  /** Since its start. */
  cpuMicros(): Promise<number>;
}

interface ServerOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

function startPetql({ maxAgeMs }: Workload, upstream: PetApiServer): Promise<Server> {
  const age = maxAgeMs === undefined ? [] : ['--max-age-ms', String(maxAgeMs)];
  const args = ['--port', '0', '--plan', '100000000/900000000', ...age];
  return startServer(join(ROOT, 'dist/main.js'), upstream, { args });
}

/** Resolves once the server listens. */
async function startServer(
  program: string,
  upstream: PetApiServer,
  { args = [], env }: ServerOptions = {},
): Promise<Server> {
  const child = fork(program, args, {
    execArgv: ['--max-semi-space-size=16', '--import', join(SERVERS, 'control.mjs')],
    env: {
      PATH: process.env['PATH'] ?? '',
      NODE_ENV: 'production',
      LOG_LEVEL: 'error',
      PET_API_URL: upstream.url,
      ...env,
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const answer = async () => Number((await once(child, 'message'))[0]);
  return {
    port: await answer(),
    async cpuMicros() {
      child.send('usage');
      return answer();
    },
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

let isBuilt = false;

/** As npm has it: plain JavaScript, as the rivals are. */
function buildPetql(): void {
  if (!isBuilt) execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'inherit' });
  isBuilt = true;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function textOf(micros: number): string {
  return micros < 10_000 ? `${micros.toFixed(0)} µs` : `${(micros / 1_000).toFixed(0)} ms`;
}
