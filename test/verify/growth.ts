import { join, resolve } from 'node:path';
import { percentile } from '../../src/program/simulate/percentile.ts';
import { createPetApi } from '../support/pet-api/pet-api.ts';
import type { PetApi } from '../support/pet-api/pet-api.ts';
import { createPetStore } from '../support/pet-api/pet-store.ts';
import { UNLIMITED } from '../support/pet-api/strict-plan.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { load } from './bench/load.ts';
import { petqlOf } from './bench/servers.ts';
import type { Server } from './bench/servers.ts';
import { CREATE, DISTINCT, DISTINCT_IDS, LIST_20, PETS, requestOf } from './bench/workloads.ts';
import type { Check, Suite } from './suite.ts';

/** What grows: so much of it, and what petql serves then. */
interface Size {
  readonly of: number;
  readonly requests: readonly Buffer[];
  /** Connections of all processes together. Default 32. */
  readonly connections?: number;
  /** Processes with one Redis in common. Default: one without. */
  readonly replicas?: number;
  /** Whether the cache answers once it has seen each request. Default false. */
  readonly isCached?: true;
  /** How many units the time of one operation is divided by. Default 1. */
  readonly units?: number;
}

interface Curve {
  readonly name: string;
  readonly goal: string;
  readonly unit: string;
  readonly sizes: readonly Size[];
  /** Most commands of petql's script that a call to the pet API may take. Default: any. */
  readonly maxScripts?: number;
}

/** What a process did for one operation, or one part of it. */
interface Figures {
  readonly cpuMicros: number;
  /** How long an operation took, on average. */
  readonly tookMs: number;
  readonly calls: number;
  /** petql's script in Redis, for a call to the pet API. */
  readonly scripts: number;
  /** Those whose compare was lost. */
  readonly lost: number;
  readonly redisMicros: number;
}

const CONNECTIONS = 32;
const ROUND_MS = 1_500;
const MIN_ROUNDS = 3;
const ROOT = join(import.meta.dirname, '../..');
/** Nothing can be served again, or all of it. */
const CALLED = { MAX_AGE_MS: '0', MAX_STALE_MS: '0' };
const CACHED = { MAX_AGE_MS: '600000' };
const REPLICAS = [1, 2, 4, 8] as const;

const DISTINCT_REQUESTS = DISTINCT.map((operation) => requestOf(operation));

const CURVES: readonly Curve[] = [
  {
    name: 'ids',
    goal: 'reads of one operation, each with a call of its own',
    unit: 'an id',
    sizes: [1, 10, 50, 100].map((of) => ({ of, units: of, connections: 2, requests: operationsOf(of) })),
  },
  {
    name: 'waiting',
    goal: 'operations that wait at once, each for a call',
    unit: 'an operation',
    sizes: [10, 50, 100, 200].map((of) => ({ of, connections: of, requests: DISTINCT_REQUESTS })),
  },
  {
    name: 'callers',
    goal: 'API keys, each of which has its list of 20 in the cache',
    unit: 'a read',
    sizes: [100, 1_000, 4_000, 10_000].map((of) => ({
      of,
      isCached: true,
      requests: Array.from({ length: of }, (_, index) => requestOf(LIST_20, `key-${index}`)),
    })),
  },
  ...(redisIsHere ? replicated() : []),
];

export const growth: Suite = {
  about: 'what an operation costs as reads, waiting reads and replicas grow',
  minutes: 0.2,
  checks: CURVES.map(checkOf),
};

function replicated(): Curve[] {
  const sizes = (requests: readonly Buffer[]) => REPLICAS.map((of) => ({ of, replicas: of, requests }));
  return [
    {
      name: 'replicas-read',
      goal: 'replicas that read pets with one key, 32 operations at a time in all',
      unit: 'a read',
      sizes: sizes(DISTINCT_REQUESTS),
      maxScripts: 1.5,
    },
    {
      name: 'replicas-create',
      goal: 'replicas that create with one key, 32 operations at a time in all',
      unit: 'a create',
      sizes: sizes([requestOf(CREATE)]),
    },
  ];
}

/** Operations that read so many pets of those that no list shows. */
function operationsOf(count: number): Buffer[] {
  return Array.from({ length: 10 }, (_, operation) => {
    const ids = Array.from(
      { length: count },
      (__, index) => DISTINCT_IDS[(operation * 61 + index) % DISTINCT_IDS.length],
    );
    return requestOf({ query: 'query ($ids: [ID!]!) { petsById(ids: $ids) { id name } }', variables: { ids } });
  });
}

function checkOf(curve: Curve): Check {
  const { name, goal, sizes } = curve;
  return {
    name,
    goal,
    async run({ minutes, beside = [] }) {
      const rows: Row[] = [];
      for (const folder of [ROOT, ...beside.map((other) => resolve(other))]) {
        for (const size of sizes) rows.push(rowOfSize(curve, size, folder, await measure(folder, size, minutes)));
      }
      return rows;
    },
  };
}

function rowOfSize(
  { unit, maxScripts = Infinity }: Curve,
  { of }: Size,
  folder: string,
  rounds: readonly Figures[],
): Row {
  const median = (figure: keyof Figures) =>
    percentile(
      rounds.map((round) => round[figure]),
      0.5,
    );
  const scripts = median('scripts');
  const redis =
    scripts > 0
      ? `, ${scripts.toFixed(2)} scripts a call, ${median('lost').toFixed(2)} of them lost, ${median('redisMicros').toFixed(0)} µs of Redis`
      : '';
  const isOver = folder === ROOT && scripts > maxScripts;
  return rowOf({
    promise: `${of}${folder === ROOT ? '' : ` by ${folder}`}`,
    looked: rounds.length,
    problems: isOver ? [`a call takes ${scripts.toFixed(2)} scripts, more than ${maxScripts}`] : [],
    measured: `${median('cpuMicros').toFixed(0)} µs of CPU ${unit}, ${median('tookMs').toFixed(0)} ms an operation, ${median('calls').toFixed(2)} calls${redis}`,
    figures: rounds,
  });
}

async function measure(folder: string, size: Size, minutes: number): Promise<Figures[]> {
  await using resources = new AsyncDisposableStack();
  const { isCached, replicas, requests, connections = CONNECTIONS, units = 1 } = size;
  const store = createPetStore({ size: PETS });
  const petApi = createPetApi({ planOf: () => UNLIMITED, storeOf: () => store });
  const { url } = resources.use(await petApi.listen());
  const redis = replicas === undefined ? undefined : await startRedis();
  resources.defer(() => redis?.close());

  const env = { ...(isCached ? CACHED : CALLED), ...(redis && { REDIS_URL: redis.url }) };
  const servers: Server[] = [];
  for (let index = 0; index < (replicas ?? 1); index += 1) {
    servers.push(resources.use(await petqlOf(folder, env)(url)));
  }

  const run = (first = 0) => {
    const all = [...requests.slice(first), ...requests.slice(0, first)];
    return loadAll(servers, { connections, requests: all, durationMs: ROUND_MS });
  };
  // Each request once at least.
  for (let done = 0; done < requests.length;) done += await run(done);
  const rounds: Figures[] = [];
  const endMs = performance.now() + minutes * 60_000;
  while (rounds.length < MIN_ROUNDS || performance.now() < endMs) {
    rounds.push(await roundOf({ servers, petApi, redis, connections, units, run }));
  }
  return rounds;
}

interface RoundParts {
  readonly servers: readonly Server[];
  readonly petApi: PetApi;
  readonly redis: { command: (...words: string[]) => Promise<string> } | undefined;
  readonly connections: number;
  readonly units: number;
  readonly run: () => Promise<number>;
}

async function roundOf({ servers, petApi, redis, connections, units, run }: RoundParts): Promise<Figures> {
  petApi.log.length = 0;
  const cpu = async () => (await Promise.all(servers.map((server) => server.cpuMicros()))).reduce((a, b) => a + b, 0);
  const before = { cpu: await cpu(), redis: await scriptsOf(redis) };
  const startedAtMs = performance.now();
  const done = await run();
  const operations = done * units;
  const after = { cpu: await cpu(), redis: await scriptsOf(redis) };
  const calls = petApi.log.length;
  return {
    cpuMicros: (after.cpu - before.cpu) / operations,
    tookMs: ((performance.now() - startedAtMs) * connections) / done,
    calls: calls / operations,
    scripts: (after.redis.count - before.redis.count) / calls,
    lost: (after.redis.lost - before.redis.lost) / calls,
    redisMicros: (after.redis.micros - before.redis.micros) / operations,
  };
}

/** Sends to all servers alike, each of which begins at another request. */
async function loadAll(
  servers: readonly Server[],
  { connections, requests, durationMs }: { connections: number; requests: readonly Buffer[]; durationMs: number },
): Promise<number> {
  const done = await Promise.all(
    servers.map(({ port }, index) => {
      const first = Math.floor((index * requests.length) / servers.length);
      const own = [...requests.slice(first), ...requests.slice(0, first)];
      return load({ port, connections: Math.ceil(connections / servers.length), durationMs, requests: own });
    }),
  );
  return done.reduce((sum, { operations }) => sum + operations, 0);
}

/** What petql's script has cost so far. Where a compare is lost, it gets the text. */
async function scriptsOf(redis: RoundParts['redis']): Promise<{ count: number; lost: number; micros: number }> {
  const stats = (await redis?.command('INFO', 'commandstats')) ?? '';
  const of = (command: string) => new RegExp(`^cmdstat_${command}:calls=(\\d+),usec=(\\d+)`, 'm').exec(stats) ?? [];
  const [, count = 0, micros = 0] = of('evalsha');
  const [, lost = 0] = of('get');
  return { count: Number(count), lost: Number(lost), micros: Number(micros) };
}
