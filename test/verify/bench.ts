import { basename, join, resolve } from 'node:path';
import { percentile } from '../../src/program/simulate/percentile.ts';
import { createPetApi } from '../support/pet-api/pet-api.ts';
import { createPetStore } from '../support/pet-api/pet-store.ts';
import { UNLIMITED } from '../support/pet-api/strict-plan.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { load } from './bench/load.ts';
import { RIVALS, petqlOf } from './bench/servers.ts';
import type { Server } from './bench/servers.ts';
import { LIST_20, PETS, WORKLOADS, requestOf } from './bench/workloads.ts';
import type { Workload } from './bench/workloads.ts';
import type { Check, Suite } from './suite.ts';

const CONNECTIONS = [1, 64, 256] as const;
/** How many connections runs use that do not say it by `--only`, and those that have goals. */
const USUAL_CONNECTIONS = 64;
const ROUND_MS = 300;
const WARM_UP_MS = 1_500;
const MIN_ROUNDS = 5;
const ROOT = join(import.meta.dirname, '../..');

/** Where petql gets its data: nothing is refreshed while the bench runs, or nothing can be served again. */
const SOURCES = { cached: { MAX_AGE_MS: '600000' }, called: { MAX_AGE_MS: '0', MAX_STALE_MS: '0' } } as const;
type Source = keyof typeof SOURCES;

/** A server and what it gets. */
interface Side {
  readonly name: string;
  readonly start: (petApiUrl: string) => Promise<Server>;
  readonly requests: readonly Buffer[];
}

interface Pair {
  readonly own: Side;
  readonly rival: Side;
  /** How much CPU time `own` may use for an operation, compared with `rival`. Default: any. */
  readonly maxRatio?: number | undefined;
}

interface Comparison {
  readonly pairs: readonly Pair[];
  readonly connections: number;
  /** Whether each round starts a process and sends one request. Default false. */
  readonly isCold?: boolean;
}

/** What one side did in one round, for each operation. */
interface Round {
  /** CPU time of all threads of the process. */
  readonly cpuMicros: number;
  readonly wallMicros: number;
  readonly calls: number;
}

type RoundsBySide = ReadonlyMap<Side, readonly Round[]>;

export const bench: Suite = {
  about: 'CPU time and throughput beside a pass-through, graphql-yoga and other checkouts, with the goals',
  minutes: 0.2,
  checks: [
    ...WORKLOADS.flatMap((workload) => CONNECTIONS.map((connections) => checkOfWorkload(workload, connections))),
    checkOfKeys(),
    ...WORKLOADS.filter(({ maxRatioWithRedis }) => redisIsHere && maxRatioWithRedis).map(checkOfRedis),
    checkOfCall(),
    checkOfStart(),
  ],
};

/** Whether all sides answer, whatever it costs. */
export async function compareBriefly(): Promise<readonly Row[]> {
  const check = bench.checks.find(({ name }) => name === `create-${USUAL_CONNECTIONS}`);
  const rows = (await check?.run({ seed: 0, minutes: 0, print: () => undefined })) ?? [];
  return rows.map((row) => ({ ...row, broken: 0, problems: [] }));
}

function checkOfWorkload(workload: Workload, connections: number): Check {
  const { name, work, requests, maxRatios = {} } = workload;
  const hasGoals = connections === USUAL_CONNECTIONS;
  const sources = (Object.keys(SOURCES) as Source[]).filter((source) => source === 'called' || !workload.isCallOnly);
  return {
    name: `${name}-${connections}`,
    goal: `${work}, by ${connections} connections`,
    onRequest: connections !== USUAL_CONNECTIONS,
    run({ minutes, beside = Object.keys(RIVALS) }) {
      const rivals = beside.filter((rival) => rival !== 'bare' || workload.isOneCall !== false);
      const pairs = sources.flatMap((source): Pair[] => {
        const own = { name: source, start: petqlOf(ROOT, SOURCES[source]), requests };
        return rivals.map((rival) => {
          const maxRatio = hasGoals ? maxRatios[`${source} ${rival}`] : undefined;
          return { own, rival: sideOf(rival, source, requests), maxRatio };
        });
      });
      return compare({ pairs: withSharedSides(pairs), connections }, minutes);
    },
  };
}

/** @param rival the name of one, or where another checkout of petql is. */
function sideOf(rival: string, source: Source, requests: readonly Buffer[]): Side {
  const start = RIVALS[rival];
  if (start) return { name: `${rival}, ${source}`, start: (url) => start(url, SOURCES[source]), requests };
  return { name: `${source} by ${basename(rival)}`, start: petqlOf(resolve(rival), SOURCES[source]), requests };
}

/** Makes sides of the same name one: it runs once. */
function withSharedSides(pairs: readonly Pair[]): readonly Pair[] {
  const sides = new Map<string, Side>();
  const shared = (side: Side) => sides.get(side.name) ?? (sides.set(side.name, side), side);
  return pairs.map((pair) => ({ ...pair, own: shared(pair.own), rival: shared(pair.rival) }));
}

function checkOfKeys(): Check {
  const requests = Array.from({ length: 1_000 }, (_, index) => requestOf(LIST_20, `key-${index}`));
  return {
    name: 'keys',
    goal: 'a list of 20 from the cache, by 1,000 keys in turn',
    run({ minutes }) {
      const start = petqlOf(ROOT, SOURCES.cached);
      const own = { name: '1,000 keys', start, requests };
      const rival = { name: 'one key', start, requests: requests.slice(0, 1) };
      // Hits of one key in one millisecond share a view of its quota, which those of many keys cannot.
      return compare({ pairs: [{ own, rival, maxRatio: 1.8 }], connections: USUAL_CONNECTIONS }, minutes);
    },
  };
}

function checkOfRedis({ name, work, requests, isCallOnly, maxRatioWithRedis }: Workload): Check {
  const source = isCallOnly ? 'called' : 'cached';
  return {
    name: `redis-${name}`,
    goal: `${work}, with Redis`,
    async run({ minutes, beside = [] }) {
      await using resources = new AsyncDisposableStack();
      const withRedis = async (side: string, folder: string): Promise<Side> => {
        const redis = await startRedis();
        resources.defer(() => redis.close());
        return { name: side, start: petqlOf(folder, { ...SOURCES[source], REDIS_URL: redis.url }), requests };
      };

      const own = await withRedis('with Redis', ROOT);
      const without = { name: 'without', start: petqlOf(ROOT, SOURCES[source]), requests };
      const pairs: Pair[] = [{ own, rival: without, maxRatio: maxRatioWithRedis }];
      for (const folder of beside.filter((rival) => !(rival in RIVALS))) {
        pairs.push({ own, rival: await withRedis(`with Redis by ${basename(folder)}`, resolve(folder)) });
      }
      return await compare({ pairs, connections: USUAL_CONNECTIONS }, minutes);
    },
  };
}

/** Alone on its connection, a list shares its call with no other. */
function checkOfCall(): Check {
  return checkBesideYoga({ name: 'call', goal: 'a list of 20 with its own call, by one connection', maxRatio: 3.4 });
}

function checkOfStart(): Check {
  const goal = 'from the start of the process to its first response';
  return checkBesideYoga({ name: 'start', goal, maxRatio: 1.7, isCold: true });
}

interface YogaGoal extends Pick<Check, 'goal' | 'name'>, Pick<Comparison, 'isCold'> {
  readonly maxRatio: number;
}

/** Compares lists with their own calls, by one connection. */
function checkBesideYoga({ name, goal, maxRatio, isCold = false }: YogaGoal): Check {
  const requests = [requestOf(LIST_20)];
  return {
    name,
    goal,
    run({ minutes, beside = ['yoga'] }) {
      const own = { name: 'petql', start: petqlOf(ROOT, SOURCES.called), requests };
      const pairs = beside.map((rival) => ({
        own,
        rival: sideOf(rival, 'called', requests),
        maxRatio: rival === 'yoga' ? maxRatio : undefined,
      }));
      return compare({ pairs, connections: 1, isCold }, minutes);
    },
  };
}

async function compare(comparison: Comparison, minutes: number): Promise<Row[]> {
  const { pairs } = comparison;
  await using resources = new AsyncDisposableStack();
  const store = createPetStore({ size: PETS });
  const petApi = createPetApi({ planOf: () => UNLIMITED, storeOf: () => store });
  const { url } = resources.use(await petApi.listen());
  const sides = [...new Set(pairs.flatMap(({ own, rival }) => [own, rival]))];
  const runs = new Map<Side, () => Promise<Round>>();
  for (const side of sides) {
    const run = comparison.isCold ? coldRun(side, url) : await warmRun(side, url, comparison.connections, resources);
    runs.set(side, async () => {
      petApi.log.length = 0;
      const { operations, cpuMicros, wallMicros } = await run();
      const calls = petApi.log.length;
      return { cpuMicros: cpuMicros / operations, wallMicros: wallMicros / operations, calls: calls / operations };
    });
  }

  const rounds = new Map<Side, Round[]>(sides.map((side) => [side, []]));
  const endMs = performance.now() + minutes * 60_000;
  for (let round = 0; round < MIN_ROUNDS || performance.now() < endMs; round += 1) {
    // In turn, and each turn in the other order, so that other work on the machine meets all.
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const result = await runs.get(side)?.();
      if (result) rounds.get(side)?.push(result);
    }
  }
  return [...sides.map((side) => rowOfSide(side, rounds)), ...pairs.map((pair) => rowOfPair(pair, rounds))];
}

interface Work {
  readonly operations: number;
  readonly cpuMicros: number;
  readonly wallMicros: number;
}

/** Starts a process that serves all rounds. */
async function warmRun(
  { start, requests }: Side,
  petApiUrl: string,
  connections: number,
  resources: AsyncDisposableStack,
): Promise<() => Promise<Work>> {
  const { port, cpuMicros } = resources.use(await start(petApiUrl));
  const run = async (durationMs: number): Promise<Work> => {
    const [startedMs, before] = [performance.now(), await cpuMicros()];
    const { operations } = await load({ port, connections, durationMs, requests });
    return { operations, cpuMicros: (await cpuMicros()) - before, wallMicros: (performance.now() - startedMs) * 1_000 };
  };
  // Each request once at least: what is cached is cached then.
  for (let done = 0; done < requests.length;) done += (await run(WARM_UP_MS)).operations;
  return () => run(ROUND_MS);
}

/** Starts a process for each round, which answers once. */
function coldRun({ start, requests }: Side, petApiUrl: string): () => Promise<Work> {
  return async () => {
    const startedMs = performance.now();
    await using server = await start(petApiUrl);
    await load({ port: server.port, connections: 1, durationMs: 0, requests });
    const wallMicros = (performance.now() - startedMs) * 1_000;
    return { operations: 1, cpuMicros: await server.cpuMicros(), wallMicros };
  };
}

function rowOfSide(side: Side, roundsBySide: RoundsBySide): Row {
  const rounds = roundsBySide.get(side) ?? [];
  const median = (figureOf: (round: Round) => number) => percentile(rounds.map(figureOf), 0.5);
  const cpu = median(({ cpuMicros }) => cpuMicros).toFixed(0);
  const rate = median(({ wallMicros }) => 1_000_000 / wallMicros).toFixed(0);
  const calls = median((round) => round.calls).toFixed(2);
  const measured = `${cpu} µs of CPU, ${rate} a second, ${calls} calls an operation`;
  return rowOf({ promise: side.name, looked: rounds.length, problems: [], measured, figures: rounds });
}

function rowOfPair({ own, rival, maxRatio }: Pair, roundsBySide: RoundsBySide): Row {
  const others = roundsBySide.get(rival) ?? [];
  const rounds = (roundsBySide.get(own) ?? []).map((round, index) => [round, others[index] as Round] as const);
  const cpu = rounds.map(([mine, other]) => mine.cpuMicros / other.cpuMicros);
  const throughput = rounds.map(([mine, other]) => other.wallMicros / mine.wallMicros);
  const isMet = maxRatio === undefined || percentile(cpu, 0.5) <= maxRatio;
  const goal = maxRatio === undefined ? '' : `: at most ${maxRatio.toFixed(2)} × the CPU time`;
  return rowOf({
    promise: `${own.name} / ${rival.name}${goal}`,
    looked: rounds.length,
    problems: isMet ? [] : [`the ratio is ${percentile(cpu, 0.5).toFixed(2)}, more than ${maxRatio.toFixed(2)}`],
    measured: `CPU × ${spread(cpu)}, throughput × ${spread(throughput)}`,
  });
}

/** Returns the median of ratios, and between which values half of them are. */
function spread(ratios: readonly number[]): string {
  const [low, median, high] = [0.25, 0.5, 0.75].map((share) => percentile(ratios, share).toFixed(2));
  return `${median} (${low} to ${high})`;
}
