import { setTimeout } from 'node:timers/promises';
import { createAnswerCheck } from '../../support/check-answers.ts';
import { checkPlan } from '../../support/check-plan.ts';
import { createReadCheck } from '../../support/check-reads.ts';
import { createWriteCheck } from '../../support/check-writes.ts';
import type { Faults } from '../../support/faults.ts';
import type { Operation } from '../../support/operation.ts';
import { STATUSES } from '../../support/pet-api/contract.ts';
import { createPetStore } from '../../support/pet-api/pet-store.ts';
import type { PetStore } from '../../support/pet-api/pet-store.ts';
import { between, createRandom } from '../../support/random.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import type { StrictPlanOptions } from '../../support/pet-api/strict-plan.ts';
import type { Row } from '../../support/tally.ts';
import { deploy } from '../deployment.ts';
import { startClients } from './clients.ts';
import { startFaultInjector } from './fault-injector.ts';
import { watchLateness } from './lateness.ts';
import { WAITS } from './operations.ts';
import { createWatch } from './watch.ts';

export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** More than one share a Redis; one has a state file. */
  readonly replicas: number;
  /** Operations a second. Default 60. */
  readonly perSecond?: number;
  /** Whether faults are injected. Default true. */
  readonly harmed?: boolean;
  /** Prints each fault, and now and then how far the run is. */
  readonly print: (text: string) => void;
}

interface SoakKey {
  /** How often it is used beside the others. */
  readonly share: number;
  /** How many pets its store has: one list shows 99 as the whole. */
  readonly size: number;
  readonly plan: StrictPlanOptions;
}

const KEYS: Readonly<Record<string, SoakKey>> = {
  free: { share: 1, size: 40, plan: { perMinute: 60, perDay: 1_000, windows: 'fixed', tells: 'minute' } },
  pro: { share: 3, size: 250, plan: { perMinute: 300, perDay: 10_000, windows: 'sliding', tells: 'changing' } },
  'pro-day': { share: 2, size: 90, plan: { perMinute: 300, perDay: 10_000, windows: 'fixed', tells: 'day' } },
  business: { share: 4, size: 250, plan: { perMinute: 1_000, perDay: 100_000, windows: 'fixed', tells: 'minute' } },
  enterprise: { share: 2, size: 60, plan: { perMinute: 120, perDay: 20_000, windows: 'sliding', tells: 'minute' } },
};
/** A quarter of the pets have no status. */
const GIVEN_STATUSES = [...STATUSES, undefined];
/** A key is banned at so many calls after a 429, those that were on their way included. */
const BAN_AT = 10;
const MAX_STALE_MS = 600_000;
const ARGS = Object.entries({
  'max-wait-ms': WAITS.maxWaitMs,
  'upstream-timeout-ms': WAITS.upstreamTimeoutMs,
  'max-stale-ms': MAX_STALE_MS,
  'log-level': 'warn',
}).flatMap(([name, value]) => [`--${name}`, String(value)]);
/** Jumps of a replica's clock, back and forth, as far as an hour. */
const CLOCK_JUMPS_MS = Array.from({ length: 40 }, (_, index) => (index % 2 ? -1 : 1) * 4 ** (1 + (index % 6)) * 1_000);
const CHANGE_EVERY_MS = 250;
/** Calls that the faults delayed arrive in this time. */
const LATE_CALLS_MS = 2_500;
/** Calls that were granted or on their way when a 429 came. */
const IN_FLIGHT_MS = 500;
/** A stall of Redis may be known only after the operations that it delayed. */
const JUDGED_AFTER_MS = 5_000;
const NEWS_EVERY_MS = 60_000;

/** A mixed load on real processes, with every fault there is, held against what petql promises: a row for each promise. */
export async function runSoak({ harmed = true, print, ...options }: SoakOptions): Promise<Row[]> {
  const { seconds, seed, replicas, perSecond = 60 } = options;
  const randomOf = (name: number) => createRandom(seed * 16 + name);
  const chance = randomOf(0);
  await using resources = new AsyncDisposableStack();
  const stores = new Map<string, PetStore>();
  const keys = Object.entries(KEYS).flatMap(([key, { size, share }], index) => {
    // Beyond what a double holds exactly, and apart, so that a pet shows whose it is.
    const firstId = 2n ** 60n + BigInt(index) * 10n ** 9n;
    const store = createPetStore({ size, firstId, statuses: GIVEN_STATUSES });
    stores.set(key, store);
    return Array.from({ length: share }, () => ({ key, store }));
  });
  const watch = createWatch();
  const deployment = await deploy(resources, {
    planOf: (key) => KEYS[key] && { ...KEYS[key].plan, banAt: BAN_AT },
    storeOf: (key) => stores.get(key) as PetStore,
    aheadMs: between(chance, -30_000, 30_000),
    latencyMs: [2, 30],
    replicas,
    store: replicas > 1 ? 'redis' : 'state-file',
    durable: true,
    args: ARGS,
    clockJumpsMs: CLOCK_JUMPS_MS,
    onStart: watch.follow,
  });
  const { petApi, fleet, faults, redis } = deployment;
  const lateness = resources.use(watchLateness(fleet.replicas));
  const upstreamAheadMs = petApi.now() - performance.now();
  const { upstreamTimeoutMs } = WAITS;
  const rules = { faults, lateness, storeOf: (key: string) => stores.get(key), upstreamTimeoutMs };
  const checks = [
    createAnswerCheck(rules),
    createReadCheck({ ...rules, maxStaleMs: MAX_STALE_MS }),
    createWriteCheck(rules),
  ];
  const ended: Operation[] = [];
  const judge = (untilMs: number) => {
    while ((ended[0]?.endedMs ?? Infinity) < untilMs) {
      const operation = ended.shift();
      for (const check of checks) if (operation) check.see?.(operation);
    }
  };
  const onOperation = (operation: Operation) => void ended.push(operation);
  const clients = startClients({ fleet, random: randomOf(1), keys, perSecond, onOperation });
  const timers = [
    setInterval(() => {
      for (const store of stores.values()) if (chance() < 0.3) store.change(chance);
    }, CHANGE_EVERY_MS),
    setInterval(() => void watch.measure(fleet.replicas), Math.min(5_000, (seconds * 1_000) / 60)),
    setInterval(() => judge(performance.now() - JUDGED_AFTER_MS), 1_000),
    setInterval(() => print(`${clients.sent} operations, ${petApi.log.length} calls`), NEWS_EVERY_MS),
    ...(redis ? [setInterval(() => void noteStall(redis.server, faults), PING_EVERY_MS)] : []),
  ];
  const onFault = (text: string) => print(`${Math.round(performance.now())} ms: ${text}`);
  const injecting = { deployment, random: randomOf(2), forMs: seconds * 1_000, onFault };
  const injector = harmed ? startFaultInjector(injecting) : undefined;
  await setTimeout(seconds * 1_000);
  await injector?.stop();
  await clients.stop();
  for (const timer of timers) clearInterval(timer);
  await setTimeout(LATE_CALLS_MS);
  await fleet.end('SIGTERM');
  judge(Infinity);
  for (const check of checks) check.finish?.();
  const injected = Object.entries(injector?.injected ?? {}).map(([fault, times]) => `${times} × ${fault}`);
  print(`${clients.sent} operations, ${petApi.log.length} calls; ${injected.join(', ') || 'no fault'}`);
  const ownCalls = petApi.log.filter(({ key }) => KEYS[key]);
  const faultTime = (atMs: number) => atMs - upstreamAheadMs;
  const plan = checkPlan(ownCalls, { faults, inFlightMs: IN_FLIGHT_MS, upstreamTimeoutMs, faultTime });
  return [...checks.flatMap(({ rows }) => rows), ...plan, ...watch.rows()];
}

const PING_EVERY_MS = 100;
/** Half of what petql waits for it. */
const STALL_MS = 250;

/** Notes where Redis stalls, past the proxy: a slow disk stalls it by itself. */
async function noteStall(server: RedisServer, faults: Faults): Promise<void> {
  const ping = server.command('PING').catch(() => {});
  // It may be gone, which is a fault that is noted.
  const isSlow = await Promise.race([ping.then(() => false), setTimeout(STALL_MS, true, { ref: false })]);
  if (!isSlow) return;
  const over = faults.begin('stalled');
  await ping;
  over();
}
