import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Plan } from '../../../src/plan.ts';
import { brokenPromises, usedShare } from '../../support/check.ts';
import { askDayUsed } from '../../support/client.ts';
import { createFaults } from '../../support/faults.ts';
import type { Faults } from '../../support/faults.ts';
import { startFaultProxy } from '../../support/fault-proxy.ts';
import type { FaultProxy } from '../../support/fault-proxy.ts';
import { startFleet } from '../../support/fleet.ts';
import type { Fleet } from '../../support/fleet.ts';
import type { Operation } from '../../support/operation.ts';
import { createPetApi } from '../../support/pet-api.ts';
import type { PetApi } from '../../support/pet-api.ts';
import { between, createRandom } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import { startRedis } from '../../support/redis-server.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import { rowOf } from '../../support/tally.ts';
import type { Row } from '../../support/tally.ts';
import type { Check } from '../suite.ts';

export const MINUTE_MS = 60_000;

/** What a scenario works with; it is closed afterwards. */
export interface Bench extends AsyncDisposable {
  readonly random: Random;
  /** Closes it when the scenario is over, in the reverse order. */
  use<T extends AsyncDisposable>(resource: T): T;
  redis(): Promise<RedisServer>;
  /** A path for a state file that is not there yet. */
  stateFile(): Promise<string>;
}

export function openBench(seed: number): Bench {
  const resources = new AsyncDisposableStack();
  return {
    random: createRandom(seed),
    use: (resource) => resources.use(resource),
    async redis() {
      const server = await startRedis();
      resources.defer(() => server.close());
      return server;
    },
    async stateFile() {
      const folder = await mkdtemp(join(tmpdir(), 'petql-verify-'));
      resources.defer(() => rm(folder, { recursive: true, force: true }));
      return join(folder, 'state.db');
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

export interface Findings {
  /** Calls that arrived, and what a scenario found out about them. */
  readonly calls: number;
  readonly measured: string;
  /** Why the goal is missed, a sentence each; none when it is reached. */
  readonly problems: readonly string[];
}

/** A check that tries one scenario. Without `processes` it needs the machine alone. */
export function scenario(
  { name, goal, processes }: Pick<Check, 'goal' | 'name' | 'processes'>,
  run: (bench: Bench) => Promise<Findings>,
): Check {
  return {
    name,
    goal,
    ...(processes === undefined ? {} : { processes }),
    async run({ seed }): Promise<Row[]> {
      await using bench = openBench(seed + hashOf(name));
      const { calls, measured, problems } = await run(bench);
      return [rowOf({ promise: goal, looked: calls, problems, measured })];
    },
  };
}

/** So that scenarios differ under one seed. */
function hashOf(text: string): number {
  let value = 0;
  for (const character of text) value = (Math.imul(value, 31) + (character.codePointAt(0) ?? 0)) | 0;
  return value;
}

/** Replicas of petql over a strict pet API. */
export interface Trial {
  readonly petApi: PetApi;
  readonly fleet: Fleet;
  readonly redis: RedisServer | undefined;
  /** Between the replicas and Redis. */
  readonly redisProxy: FaultProxy | undefined;
  readonly faults: Faults;
}

export interface TrialOptions {
  readonly plan: Plan;
  readonly windows?: 'fixed' | 'sliding';
  readonly replicas: number;
  /** Default: there is a Redis where there is more than one replica. */
  readonly withRedis?: boolean;
  /** Default: somewhere within half a minute, so that windows of scenarios that run beside each other differ. */
  readonly upstreamAheadMs?: number;
  /** Default 5 to 40. */
  readonly latencyMs?: readonly [from: number, to: number];
  readonly args?: readonly string[];
  readonly clocksAheadMs?: readonly number[];
}

/** Longer than a window, so that clients can wait for the next one. */
const MAX_WAIT_MS = 70_000;

export async function startTrial(bench: Bench, options: TrialOptions): Promise<Trial> {
  const { random } = bench;
  const { plan, windows = 'fixed', replicas: count, withRedis = count > 1, latencyMs = [5, 40] } = options;
  const { upstreamAheadMs: aheadMs = between(random, -30_000, 30_000), clocksAheadMs = [] } = options;
  const petApi = createPetApi({ planOf: () => ({ ...plan, windows, tells: 'minute' }), seed: 1, latencyMs, aheadMs });
  const { url: upstreamUrl } = bench.use(await petApi.listen());
  const redis = withRedis ? await bench.redis() : undefined;
  const redisProxy = redis && bench.use(await startFaultProxy({ target: redis.url }));
  const args = ['--admin-port', '0', '--max-wait-ms', String(MAX_WAIT_MS), ...(options.args ?? [])];
  const redisUrl = redisProxy?.url;
  const fleet = bench.use(await startFleet({ count, upstreamUrl, redisUrl, args, clocksAheadMs }));
  // With their code loaded and their Redis found, as replicas behind a load balancer.
  await Promise.all(fleet.endpoints.map((endpoint) => askDayUsed(endpoint(), 'nobody')));
  if (redis) await fleet.knowEachOther();
  return { petApi, fleet, redis, redisProxy, faults: createFaults() };
}

/** kill -9 of these replicas at the same time, and new processes in their places. */
export async function crash({ fleet, faults }: Trial, replicas: readonly number[]): Promise<void> {
  const over = faults.begin('killed');
  await Promise.all(replicas.map((replica) => fleet.kill(replica)));
  for (const replica of replicas) await fleet.restart(replica);
  over();
}

export interface Judged {
  readonly trial: Pick<Trial, 'faults' | 'petApi'>;
  readonly operations: readonly Operation[];
  /** 429s of the plan that the goal allows. Default 0. */
  readonly maxRefusals?: number;
  /** Which share of the plan the calls of a key since then use at least. Default: not measured. */
  readonly used?: { readonly plan: Plan; readonly key: string; readonly fromMs: number; readonly atLeast: number };
  readonly measured?: string;
  /** What else is wrong. */
  readonly problems?: readonly string[];
}

/** Calls that were granted or on their way when a 429 came: half a second is one exchange with a slow Redis. */
const IN_FLIGHT_MS = 500;

/** Holds what happened against the rules that every scenario has, and its own figures. */
export function judge({ trial, operations, maxRefusals = 0, used, measured, problems = [] }: Judged): Findings {
  const { petApi, faults } = trial;
  const { log, storeOf } = petApi;
  const aheadMs = petApi.now() - performance.now();
  const faultTime = (atMs: number) => atMs - aheadMs;
  const rules = { incidents: maxRefusals, inFlightMs: IN_FLIGHT_MS, quiet: true, faults, faultTime };
  const found = [...problems, ...brokenPromises({ log, operations, storeOf }, rules)];
  const refusals = log.filter(({ over }) => over).length;
  if (refusals > maxRefusals) found.unshift(`${refusals} × 429, at most ${maxRefusals} expected`);
  const own = log.filter(({ key, atMs }) => key === used?.key && atMs >= used.fromMs);
  const share = used && usedShare(own, used.plan.perMinute);
  const shown = share === undefined ? undefined : `${(share * 100).toFixed(1)} % used`;
  // Written so that a share of nothing is a problem too.
  if (used && !(Number(share) >= used.atLeast)) found.unshift(`${shown}, at least ${used.atLeast * 100} % expected`);
  const figures = [shown, `${refusals} × 429`, measured].filter((text) => text !== undefined);
  return { calls: log.length, measured: figures.join(', '), problems: found };
}

/** Settles at this moment of the pet API's clock. */
export async function untilUpstream(petApi: PetApi, atMs: number): Promise<void> {
  await new Promise((resolve) => void setTimeout(resolve, Math.max(0, atMs - petApi.now())));
}

/** The next whole minute of the pet API's clock that is at least a second away. */
export function nextMinute(petApi: PetApi): number {
  return Math.ceil((petApi.now() + 1_000) / MINUTE_MS) * MINUTE_MS;
}

/** An `upstreamAheadMs` with which a minute of the pet API's begins so long from now. */
export function aheadForMinuteIn(ms: number): number {
  return MINUTE_MS - ((Date.now() + ms) % MINUTE_MS);
}
