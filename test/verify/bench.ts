import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { percentile } from '../../src/simulate/percentile.ts';
import { createPetApi } from '../support/pet-api/pet-api.ts';
import { createPetStore } from '../support/pet-api/pet-store.ts';
import { UNLIMITED } from '../support/pet-api/strict-plan.ts';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { load } from './bench/load.ts';
import { PETS, WORKLOADS } from './bench/workloads.ts';
import type { Workload } from './bench/workloads.ts';
import type { Check, Suite } from './suite.ts';

export const bench: Suite = {
  about: 'CPU time beside graphql-yoga over undici and beside node:http, with the goals',
  minutes: 0.3,
  checks: WORKLOADS.map((workload): Check => {
    const { name, work, rival, maxRatio } = workload;
    const goal = `${work}: at most ${maxRatio.toFixed(2)} × the CPU time of ${rival}`;
    return { name, goal, run: async ({ minutes }) => [await compare(workload, goal, minutes)] };
  }),
};

const CONNECTIONS = 64;
const ROUND_MS = 500;
const WARM_UP_MS = 1_500;
const MIN_ROUNDS = 5;
const ROOT = join(import.meta.dirname, '../..');
const SERVERS = join(import.meta.dirname, 'bench');

/** What one side did in one round. */
interface Round {
  readonly operations: number;
  /** CPU time of an operation, of all threads of the process. */
  readonly cpuMicros: number;
}

type Side = () => Promise<Round>;

async function compare(workload: Workload, goal: string, minutes: number): Promise<Row> {
  buildPetql();
  await using resources = new AsyncDisposableStack();
  const store = createPetStore({ size: PETS });
  const petApi = createPetApi({ planOf: () => UNLIMITED, storeOf: () => store });
  const { url } = resources.use(await petApi.listen());
  const [petql, rival] = await (workload.cold ? coldSides(workload, url) : warmSides(workload, url, resources));
  const rounds: { readonly own: Round; readonly other: Round; readonly calls: number }[] = [];
  const endMs = performance.now() + minutes * 60_000;
  // In turn, so that other work on the machine meets both.
  while (rounds.length < MIN_ROUNDS || performance.now() < endMs) {
    petApi.log.length = 0;
    const own = await petql();
    const calls = petApi.log.length / own.operations;
    rounds.push({ own, calls, other: await rival() });
  }
  const median = (figureOf: (round: (typeof rounds)[number]) => number) => percentile(rounds.map(figureOf), 0.5);
  const ratio = median(({ own, other }) => own.cpuMicros / other.cpuMicros);
  const [own, other] = [median((round) => round.own.cpuMicros), median((round) => round.other.cpuMicros)];
  const calls = median((round) => round.calls);
  const isMet = ratio <= workload.maxRatio;
  return rowOf({
    promise: goal,
    looked: rounds.length,
    problems: isMet ? [] : [`the ratio is ${ratio.toFixed(2)}, more than ${workload.maxRatio.toFixed(2)}`],
    measured: `CPU × ${ratio.toFixed(2)} (${own.toFixed(0)} and ${other.toFixed(0)} µs), ${calls.toFixed(2)} calls an operation`,
    figures: rounds,
  });
}

/** Two processes that serve all rounds. */
async function warmSides(
  workload: Workload,
  petApiUrl: string,
  resources: AsyncDisposableStack,
): Promise<[Side, Side]> {
  const { requests, rival, connections = CONNECTIONS } = workload;
  const petql = resources.use(await startPetql(workload, petApiUrl));
  const { body } = await load({ port: petql.port, connections: 1, durationMs: 0, requests });
  const rivals = {
    'one key': () => startPetql(workload, petApiUrl),
    yoga: () => startServer('yoga.mjs', { PET_API_URL: petApiUrl }),
    bare: () => startServer('bare.mjs', { BODY: body }),
  };
  const other = resources.use(await rivals[rival]());
  const run = async ({ port, cpuMicros }: Server, sent: readonly Buffer[], durationMs: number): Promise<Round> => {
    const before = await cpuMicros();
    const { operations } = await load({ port, connections, durationMs, requests: sent });
    return { operations, cpuMicros: ((await cpuMicros()) - before) / operations };
  };
  const otherRequests = rival === 'one key' ? requests.slice(0, 1) : requests;
  // Each request once at least: what is cached is cached then.
  for (let done = 0; done < requests.length;) done += (await run(petql, requests, WARM_UP_MS)).operations;
  for (let done = 0; done < requests.length;) done += (await run(other, otherRequests, WARM_UP_MS)).operations;
  return [() => run(petql, requests, ROUND_MS), () => run(other, otherRequests, ROUND_MS)];
}

/** A process for each round, which answers once. */
async function coldSides(workload: Workload, petApiUrl: string): Promise<[Side, Side]> {
  const { requests } = workload;
  const runOf = (start: () => Promise<Server>) => async () => {
    await using server = await start();
    await load({ port: server.port, connections: 1, durationMs: 0, requests });
    return { operations: 1, cpuMicros: await server.cpuMicros() };
  };
  const yoga = () => startServer('yoga.mjs', { PET_API_URL: petApiUrl });
  return [runOf(() => startPetql(workload, petApiUrl)), runOf(yoga)];
}

interface Server extends AsyncDisposable {
  readonly port: number;
  /** Since its start. */
  readonly cpuMicros: () => Promise<number>;
}

function startPetql({ maxAgeMs = 1_000 }: Workload, petApiUrl: string): Promise<Server> {
  const env = { PET_API_URL: petApiUrl, PORT: '0', PLAN: '100000000/900000000', MAX_AGE_MS: String(maxAgeMs) };
  return startServer(join(ROOT, 'dist/program/main.js'), { ...env, LOG_LEVEL: 'error' });
}

/** Resolves once the server listens. */
async function startServer(program: string, env: NodeJS.ProcessEnv): Promise<Server> {
  const child = fork(resolve(SERVERS, program), {
    execArgv: ['--max-semi-space-size=16', '--import', join(SERVERS, 'control.mjs')],
    env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...env },
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
