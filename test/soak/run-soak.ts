import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFaultProxy } from '../faults/fault-proxy.ts';
import { between, createRandom } from '../prove/random.ts';
import { startStrictUpstream } from '../prove/strict-upstream.ts';
import { startRedis } from '../support/redis-server.ts';
import type { StrictPlanOptions } from '../throttle/strict-plan.ts';
import { WAITS } from './asks.ts';
import { createAnswerCheck } from './checks/answers.ts';
import { createLevelCheck } from './checks/levels.ts';
import { createPlanCheck } from './checks/plans.ts';
import { createProcessCheck } from './checks/processes.ts';
import { createTruthCheck } from './checks/truth.ts';
import { createWriteCheck } from './checks/writes.ts';
import { startClients } from './clients.ts';
import { createDisturbances } from './disturbances.ts';
import { createFailingService } from './failing-service.ts';
import { startFleet } from './fleet.ts';
import { watchLateness } from './lateness.ts';
import { startNemesis } from './nemesis.ts';
import { createPetStore } from './pet-store.ts';
import type { PetStore } from './pet-store.ts';
import { watchRedis } from './redis-watch.ts';
import type { Tally } from './tally.ts';

export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Default 3. More than one share a Redis. */
  readonly replicas?: number;
  /** Operations a second. Default 60. */
  readonly perSecond?: number;
  /** Whether anything is harmed. Default true. */
  readonly nemesis?: boolean;
  /** Told of each trouble, and now and then of how it goes. */
  readonly onNews?: (text: string) => void;
}

export interface SoakResult {
  readonly seed: number;
  readonly seconds: number;
  readonly operations: number;
  readonly calls: number;
  readonly troubles: Readonly<Record<string, number>>;
  readonly tallies: readonly Tally[];
}

interface SoakKey {
  readonly key: string;
  readonly share: number;
  /** How many animals its store has: one listing shows 99 as the whole. */
  readonly size: number;
  readonly plan: StrictPlanOptions;
}

/** A key is banned at so many calls after a 429, those that were on their way included. */
const BAN_AT = 10;
const MAX_STALE_MS = 600_000;
const CHANGE_EVERY_MS = 250;
/** Jumps of a replica's clock, back and forth, as far as an hour. */
const CLOCK_JUMPS_MS = Array.from({ length: 40 }, (_, index) => (index % 2 ? -1 : 1) * 4 ** (1 + (index % 6)) * 1_000);
/** Calls that the faults delayed arrive in this time. */
const LATE_CALLS_MS = 2_500;
const NEWS_EVERY_MS = 60_000;

const KEYS: readonly SoakKey[] = [
  { key: 'free', share: 1, size: 40, plan: { perMinute: 60, perDay: 1_000, windows: 'fixed', tells: 'minute' } },
  { key: 'pro', share: 3, size: 250, plan: { perMinute: 300, perDay: 10_000, windows: 'sliding', tells: 'changing' } },
  { key: 'pro-day', share: 2, size: 90, plan: { perMinute: 300, perDay: 10_000, windows: 'fixed', tells: 'day' } },
  {
    key: 'business',
    share: 4,
    size: 250,
    plan: { perMinute: 1_000, perDay: 100_000, windows: 'fixed', tells: 'minute' },
  },
  {
    key: 'enterprise',
    share: 2,
    size: 60,
    plan: { perMinute: 120, perDay: 20_000, windows: 'sliding', tells: 'minute' },
  },
];
const UNKNOWN_PLAN: StrictPlanOptions = { perMinute: 60, perDay: 1_000, windows: 'fixed', tells: 'minute' };

/** A mixed load on real processes, with whatever can go wrong, held against what petql promises. */
export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const { seconds, seed, replicas = 3, perSecond = 60, onNews = () => {} } = options;
  await using resources = new AsyncDisposableStack();
  const random = (name: number) => createRandom(seed * 16 + name);
  const chance = random(0);
  const disturbances = createDisturbances();
  const stores = new Map<string, PetStore>(
    // Beyond what a double holds exactly, and apart, so that an animal tells whose it is.
    KEYS.map(({ key, size }, index) => [key, createPetStore({ size, firstId: 2n ** 60n + BigInt(index) * 10n ** 9n })]),
  );
  const storeOf = (key: string) => stores.get(key);
  const planOf = (key: string) => KEYS.find((one) => one.key === key)?.plan;
  const service = createFailingService(storeOf, random(1));
  const upstream = resources.use(
    await startStrictUpstream({
      plan: (key) => ({ ...(planOf(key) ?? UNKNOWN_PLAN), banAt: BAN_AT }),
      service: service.serve,
      aheadMs: between(chance, -30_000, 30_000),
      behaviour: { latencyMs: () => between(chance, 2, 30) },
    }),
  );
  const upstreamProxy = resources.use(await startFaultProxy({ target: upstream.url }));
  const redis = replicas > 1 ? await openRedis(resources) : undefined;
  if (redis) {
    const onStall = (tookMs: number) =>
      onNews(`${Math.round(performance.now())} ms: Redis stalled for ${Math.round(tookMs)} ms by itself`);
    const watch = watchRedis({ server: redis.server, disturbances, onStall });
    resources.defer(() => watch.stop());
  }
  const processCheck = createProcessCheck();
  const fleet = await startFleet({
    count: replicas,
    upstreamUrl: upstreamProxy.url,
    redisUrl: redis?.proxy.url,
    args: redis ? ARGS : [...ARGS, '--state-file', await stateFile(resources)],
    clockJumpsMs: CLOCK_JUMPS_MS,
    disturbances,
    check: processCheck,
  });
  resources.defer(() => fleet.close());

  const lateness = watchLateness(fleet.running);
  resources.defer(() => lateness.stop());
  const upstreamAheadMs = upstream.now() - performance.now();
  const checks = [
    createAnswerCheck({ disturbances, lateness, upstreamTimeoutMs: WAITS.upstreamTimeoutMs }),
    createTruthCheck({
      disturbances,
      lateness,
      storeOf,
      maxStaleMs: MAX_STALE_MS,
      upstreamTimeoutMs: WAITS.upstreamTimeoutMs,
    }),
    createWriteCheck({ disturbances, lateness, storeOf }),
    createPlanCheck({ arrivals: upstream.arrivals, planOf, disturbances, soakTime: (atMs) => atMs - upstreamAheadMs }),
    createLevelCheck(fleet.processes),
    processCheck,
  ];
  const changes = setInterval(() => {
    for (const store of stores.values()) if (chance() < 0.3) store.change(chance);
  }, CHANGE_EVERY_MS);
  const measuring = setInterval(() => void fleet.measure(), Math.min(5_000, (seconds * 1_000) / 60));
  const clients = startClients({
    fleet,
    random: random(2),
    keys: KEYS.map(({ key, share }) => ({ key, share, store: stores.get(key) as PetStore })),
    perSecond,
    onOperation: (operation) => {
      for (const check of checks) check.see?.(operation);
    },
  });
  const news = setInterval(
    () => onNews(`${clients.sent} operations, ${upstream.arrivals.length} calls`),
    NEWS_EVERY_MS,
  );
  const startedMs = performance.now();
  const nemesis =
    options.nemesis === false
      ? undefined
      : startNemesis({
          world: { disturbances, fleet, service, upstreamProxy, redis },
          random: random(3),
          forMs: seconds * 1_000,
          onTrouble: (text) => onNews(`${Math.round(performance.now())} ms: ${text}`),
        });
  await pause(seconds * 1_000);
  await nemesis?.stop();
  await clients.stop();
  for (const timer of [measuring, news, changes]) clearInterval(timer);
  await pause(LATE_CALLS_MS);
  await fleet.close();
  for (const check of checks) check.finish?.();
  return {
    seed,
    seconds: Math.round((performance.now() - startedMs) / 1_000),
    operations: clients.sent,
    calls: upstream.arrivals.length,
    troubles: nemesis?.made ?? {},
    tallies: checks.flatMap(({ tallies }) => tallies),
  };
}

const ARGS = Object.entries({
  'max-wait-ms': WAITS.maxWaitMs,
  'upstream-timeout-ms': WAITS.upstreamTimeoutMs,
  'max-stale-ms': MAX_STALE_MS,
  'admin-port': 0,
  'log-level': 'warn',
}).flatMap(([name, value]) => [`--${name}`, String(value)]);

async function openRedis(resources: AsyncDisposableStack) {
  const server = await startRedis({ durable: true });
  resources.defer(() => server.close());
  return { server, proxy: resources.use(await startFaultProxy({ target: server.url })) };
}

/** Where one process keeps over its restarts what replicas keep in Redis. */
async function stateFile(resources: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'petql-soak-'));
  resources.defer(() => rm(folder, { recursive: true }));
  return join(folder, 'state.db');
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
