import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGateway } from '../../src/index.ts';
import type { GatewayOptions } from '../../src/index.ts';
import type { History } from './check.ts';
import { createMemoryLog } from './memory-log.ts';
import type { LogLine } from './memory-log.ts';
import type { Answer, Field, Operation, Outcome, WantedPet } from './operation.ts';
import { createPetApi } from './pet-api/pet-api.ts';
import type { PetApi, PetApiOptions } from './pet-api/pet-api.ts';
import { between, createRandom } from './random.ts';
import { serve } from './serve.ts';
import type { StrictPlanOptions } from './pet-api/strict-plan.ts';
import { startVirtualTime } from '../../src/program/simulate/virtual-time.ts';

/**
 * A pet API and any number of petql gateways on one virtual clock, where nothing is random but by the seed:
 *
 *     await using world = await createWorld({ seed, startsAt: '2026-11-21T11:59:13Z', keys: { key: {...PLANS.free, ...} } });
 *     const petql = await world.start({ plan: 'free' });
 *     await world.saturate([petql], 5 * MINUTE_MS);        // clients that want more than the plan allows
 *     expect(brokenPromises(world.history())).toEqual([]);
 *
 * Time passes only in `pass`, `until` and `saturate`: what a test starts without waiting for it goes on in the next of these.
 */
export interface World extends AsyncDisposable {
  readonly petApi: PetApi;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  readonly start: (options?: StartOptions) => Promise<Petql>;
  /** Lets so many milliseconds pass. */
  readonly pass: (ms: number) => Promise<void>;
  /** Lets time pass until the promise settles. */
  readonly until: <T>(promise: Promise<T>) => Promise<T>;
  /** Clients send operations as fast as they can for so long, and return when petql says; then all are answered. */
  readonly saturate: (petqls: readonly Petql[], durationMs: number, load?: LoadOptions) => Promise<void>;
  readonly history: () => History;
  /** A path for a state file that is not there yet. */
  readonly newFile: () => string;
}

export interface WorldOptions extends Pick<PetApiOptions, 'latencyMs' | 'storeOf'> {
  readonly seed: number;
  /** The plan of each API key. Any other key is answered 401. */
  readonly keys: Readonly<Record<string, StrictPlanOptions>>;
  /** When the world begins, as a date of ISO 8601. */
  readonly startsAt: string;
}

export interface StartOptions extends Partial<Omit<GatewayOptions, 'clock' | 'dispatcher'>> {
  /** Milliseconds that its wall clock is ahead of the pet API's. Default 0. */
  readonly aheadMs?: number;
}

export interface LoadOptions {
  /** Default `key`. */
  readonly key?: string;
  /** What the clients do. Default `create`. */
  readonly kind?: 'create' | 'read';
  /** Of each petql. Default 10. */
  readonly clients?: number;
  /** Pets in an operation. Default 10. */
  readonly batch?: number;
  /** How long an operation may wait. Default 10 s. */
  readonly waitMs?: number;
}

export interface OperationOptions {
  /** Default `key`. */
  readonly key?: string;
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
  /** The end user behind the key. */
  readonly visitor?: string;
  /** Whether it yields to all others. */
  readonly background?: boolean;
  readonly dryRun?: boolean;
  readonly cacheControl?: string;
  readonly variables?: Record<string, unknown>;
}

/** One process of petql. */
export interface Petql {
  readonly logLines: readonly LogLine[];
  /** Serves a request for `/graphql`, whatever its origin. */
  readonly fetch: (request: Request) => Promise<Response>;
  readonly ask: (document: string, options?: OperationOptions) => Promise<Answer>;
  /** One operation that creates so many pets, one after the other. */
  readonly create: (count: number, options?: OperationOptions) => Promise<Answer>;
  /** One operation that reads so many pets that no list shows, and none of them from the cache. */
  readonly read: (count: number, options?: OperationOptions) => Promise<Answer>;
  readonly rateLimit: (key?: string) => Promise<RateLimit>;
  /** Gets a page over HTTP; `/metrics` with the option `admin` alone. No time passes. */
  readonly page: (path: '/health/ready' | '/metrics') => Promise<string>;
  readonly stop: () => Promise<void>;
  /** kill -9. @returns a copy of its state file, for the process after it. */
  readonly kill: () => string;
}

export type RateLimit = Readonly<Record<'day' | 'minute', Window>>;

interface Window {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly resetAt: string | null;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** A client that was refused comes back within this time. */
const MAX_REST_MS = HOUR_MS;

export async function createWorld({ seed, keys, startsAt, ...more }: WorldOptions): Promise<World> {
  const time = await startVirtualTime(Date.parse(startsAt));
  const petApi = createPetApi({ seed, latencyMs: [10, 80], ...more, planOf: (key) => keys[key] });
  const hiddenIds = petApi.storeOf('key').hiddenIds();
  const random = createRandom(seed + 1);
  const { random: realRandom } = Math;
  Math.random = createRandom(seed + 2);
  const operations = new Set<LoggedOperation>();
  const running = new Set<Petql>();
  let folder: string | undefined;
  let files = 0;
  let names = 0;

  return {
    petApi,
    get nowMs() {
      return Date.now();
    },
    start,
    pass: (ms) => until(sleep(ms)),
    until,
    saturate,
    history: () => ({ log: petApi.log, operations: [...operations], storeOf: petApi.storeOf }),
    newFile,
    async [Symbol.asyncDispose]() {
      try {
        await until(Promise.all([...running].map((petql) => petql.stop())));
      } finally {
        time[Symbol.dispose]();
        Math.random = realRandom;
        if (folder !== undefined) rmSync(folder, { recursive: true });
      }
    },
  };

  async function until<T>(promise: Promise<T>, run: typeof time.run = time.run): Promise<T> {
    let isOver = false;
    const end = () => void (isOver = true);
    promise.then(end, end);
    await run(() => isOver);
    return promise;
  }

  function newFile(): string {
    folder ??= mkdtempSync(join(tmpdir(), 'petql-plan-'));
    files += 1;
    return join(folder, `state-${files}.db`);
  }

  async function start({ aheadMs = 0, ...given }: StartOptions = {}): Promise<Petql> {
    const connections = petApi.connect();
    const { log, lines } = createMemoryLog();
    const gateway = createGateway({
      petApiUrl: 'http://pet-api.test/v1',
      maxWaitMs: 600_000,
      log,
      clock: { now: () => Date.now() + aheadMs, elapsed: () => Date.now() - 1_000_000 },
      dispatcher: connections,
      ...given,
    });
    await until(gateway.execute({ document: '{ __typename }' }), time.settle);
    const unanswered = new Set<LoggedOperation>();
    const petql: Petql = {
      logLines: lines,
      fetch: async (request) => gateway.fetch(request),
      ask: (document, options) => ask(document, [], options),
      create(count, options) {
        const pets = Array.from({ length: count }, () => ({ name: `pet ${(names += 1)}`, categoryId: '1' }));
        const variables = Object.fromEntries(pets.map((pet, index) => [`p${index}`, pet]));
        return ask(createDocument(count), pets, { ...options, variables });
      },
      read: (count, options) =>
        ask('query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', [], {
          cacheControl: 'no-cache',
          ...options,
          variables: { ids: Array.from({ length: count }, () => hiddenIds[between(random, 0, hiddenIds.length - 1)]) },
        }),
      async rateLimit(key = 'key') {
        const document = '{ rateLimit { windows { window limit used remaining resetAt } } }';
        // A Redis takes time to answer.
        const { data } = await until(
          gateway.execute({ document, apiKey: key }),
          given.redisConnection ? time.run : time.settle,
        );
        const windows: any[] = (data as any).rateLimit.windows;
        const find = (name: string) => windows.find(({ window }) => window === name);
        return { minute: find('MINUTE'), day: find('DAY') };
      },
      async page(path) {
        await using server = await serve((path === '/metrics' ? gateway.admin : undefined) ?? gateway.handle);
        const text = fetch(`${server.origin}${path}`).then((response) => response.text());
        return await until(text, time.settle);
      },
      async stop() {
        running.delete(petql);
        await gateway.close();
      },
      kill() {
        for (const operation of unanswered) operation.outcome = { kind: 'left' };
        unanswered.clear();
        running.delete(petql);
        connections.cut();
        given.redisConnection?.close();
        return given.stateFile === undefined ? '' : copyOf(given.stateFile);
      },
    };
    running.add(petql);
    return petql;

    async function ask(document: string, pets: readonly WantedPet[], options: OperationOptions = {}): Promise<Answer> {
      const { key = 'key', ...rest } = options;
      const fields = pets.map((pet): Field => ({ kind: 'create', pet }));
      const startedMs = Date.now();
      const operation: LoggedOperation = { key, startedMs, endedMs: Infinity, fields, outcome: { kind: 'hung' } };
      operations.add(operation);
      unanswered.add(operation);
      const executing = gateway.execute({ document, apiKey: key, ...rest }) as Promise<Answer>;
      try {
        const answer = await executing;
        if (unanswered.has(operation)) operation.outcome = { kind: 'answered', httpStatus: 200, answer };
        return answer;
      } catch (error) {
        operation.outcome = { kind: 'left' };
        throw error;
      } finally {
        operation.endedMs = Date.now();
        unanswered.delete(operation);
      }
    }
  }

  async function saturate(petqls: readonly Petql[], durationMs: number, load: LoadOptions = {}): Promise<void> {
    const { clients = 10, batch = 10, kind = 'create', waitMs = 10_000, key = 'key' } = load;
    const endMs = Date.now() + durationMs;
    const work = async (petql: Petql) => {
      while (Date.now() < endMs) {
        const { errors = [] } = await petql[kind](batch, { key, waitMs });
        const waitsMs = errors.map(({ extensions }) => extensions.retryAfterMs ?? 0);
        if (waitsMs.length === 0) continue;
        const restMs = Math.min(MAX_REST_MS, Math.max(100, ...waitsMs)) + between(random, 0, 500);
        if (Date.now() + restMs < endMs) await sleep(restMs);
        else return;
      }
    };
    const working = petqls.flatMap((petql) => Array.from({ length: clients }, () => work(petql)));
    await until(Promise.all(working));
    if (Date.now() < endMs) await until(sleep(endMs - Date.now()));
  }

  function copyOf(path: string): string {
    const copy = newFile();
    for (const suffix of ['', '-wal']) if (existsSync(path + suffix)) copyFileSync(path + suffix, copy + suffix);
    return copy;
  }
}

type LoggedOperation = Operation & { endedMs: number; outcome: Outcome };

/** How many pets an operation of `create` added. */
export function createdIn({ data }: Answer): number {
  return Object.values(data ?? {}).filter((payload) => payload !== null).length;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

function createDocument(count: number): string {
  const all = Array.from({ length: count }, (_, index) => index);
  const variables = all.map((index) => `$p${index}: CreatePetInput!`).join(' ');
  const fields = all.map((index) => `f${index}: createPet(input: $p${index}) { pet { id } }`).join(' ');
  return `mutation (${variables}) { ${fields} }`;
}
