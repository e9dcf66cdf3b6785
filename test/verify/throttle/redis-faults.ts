import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/plan.ts';
import { askDayUsed, createPet } from '../../support/client.ts';
import { startLoad } from '../../support/load.ts';
import { outcomeOf } from '../../support/operation.ts';
import type { Operation } from '../../support/operation.ts';
import type { PetApi } from '../../support/pet-api.ts';
import type { Check } from '../suite.ts';
import { MINUTE_MS, crash, judge, nextMinute, scenario, startTrial, untilUpstream } from './trial.ts';
import type { Bench, Findings, Trial } from './trial.ts';

const KEY = 'pro-key';
const REPLICAS = 3;
/** Few clients and slow responses: a window's calls take some twenty seconds, so that a fault strikes among them. */
const CLIENTS_PER_REPLICA = 2;
const LATENCY_MS = [300, 500] as const;
const STRANGER_EVERY_MS = 250;
const ASK_EVERY_MS = 100;
const MINUTES = 4;
const AFTERMATH_MS = 5_000;
/** In which the window after the measured ones begins, which ends the last of them. */
const BEGUN_MS = 5_000;

interface RedisFault {
  /** 429s that the goal allows. Default 1. */
  readonly maxRefusals?: number;
  /** The share of the plan that is used. Default 0.85. */
  readonly atLeast?: number;
  /** How long a call with a new key may wait. Default 1 s. */
  readonly maxWaitMs?: number;
  begin(trial: Trial, time: number): unknown;
  end(trial: Trial, time: number): unknown;
}

/** Each strikes twice: for eight seconds in the middle of a window's calls, and for fifteen around a window's end. */
const STRIKES_MS = [
  [5_000, 13_000],
  [115_000, 130_000],
] as const;

const FAULTS: Readonly<Record<string, RedisFault>> = {
  killed: { begin: ({ redis }) => redis?.kill(), end: ({ redis }) => redis?.start() },
  stopped: { begin: ({ redis }) => redis?.freeze(), end: ({ redis }) => redis?.thaw() },
  emptied: {
    begin: ({ redis }) => redis?.command('FLUSHALL'),
    // A replica that starts now knows only what the others have put back.
    end: (trial, time) => crash(trial, [time]),
  },
  slow: { maxRefusals: 0, atLeast: 0.5, maxWaitMs: 5_000, ...slowRedis(150) },
  // Slower than any call to Redis may be.
  'too-slow': slowRedis(700),
  'read-only': setting(['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']),
  'too-few-replicas': config('min-replicas-to-write', '3'),
  'out-of-memory': config('maxmemory', '1'),
};

function slowRedis(latencyMs: number): RedisFault {
  return {
    begin: ({ redisProxy }) => redisProxy?.setFault({ latencyMs }),
    end: ({ redisProxy }) => redisProxy?.setFault(undefined),
  };
}

function setting(begin: readonly string[], end: readonly string[]): RedisFault {
  return { begin: ({ redis }) => redis?.command(...begin), end: ({ redis }) => redis?.command(...end) };
}

function config(name: string, value: string): RedisFault {
  return setting(['CONFIG', 'SET', name, value], ['CONFIG', 'SET', name, '0']);
}

export const redisFaults: readonly Check[] = Object.entries(FAULTS).map(([name, fault]) => {
  const { maxRefusals = 1, atLeast = 0.85, maxWaitMs = 1_000 } = fault;
  const goal = `at most ${maxRefusals} × 429, ${atLeast * 100} % used, nothing waits over ${maxWaitMs / 1_000} s for Redis`;
  return scenario({ name: `redis-${name}`, goal, processes: REPLICAS }, (bench) =>
    suffer(bench, { ...fault, maxRefusals, atLeast, maxWaitMs }),
  );
});

async function suffer(bench: Bench, fault: Required<RedisFault>): Promise<Findings> {
  const { maxRefusals, atLeast, maxWaitMs } = fault;
  const plan = PLANS.pro;
  const trial = await startTrial(bench, { plan, replicas: REPLICAS, latencyMs: LATENCY_MS });
  const { petApi, fleet } = trial;
  const { endpoints } = fleet;
  const load = startLoad({ endpoints, key: KEY, clientsPerReplica: CLIENTS_PER_REPLICA, random: bench.random });
  const stopping = new AbortController();
  const strangers = callAsStrangers(endpoints, stopping.signal);
  const asking = Promise.all(endpoints.map((endpoint) => watchQuota(endpoint, stopping.signal)));
  const fromMs = nextMinute(petApi);
  for (const [time, [beginMs, endMs]] of STRIKES_MS.entries()) {
    await untilUpstream(petApi, fromMs + beginMs);
    await fault.begin(trial, time);
    await untilUpstream(petApi, fromMs + endMs);
    await fault.end(trial, time);
  }
  await untilUpstream(petApi, fromMs + MINUTES * MINUTE_MS + BEGUN_MS);
  stopping.abort();
  await load.stop();
  const [called, longestMs] = [await strangers, Math.max(...(await asking))];

  const upstreamTime = (ms: number) => ms + petApi.now() - performance.now();
  const struck = called.filter(({ startedMs }) => isStruck(upstreamTime(startedMs) - fromMs));
  const waitMs = longestWaitMs(struck, petApi, upstreamTime);
  const problems: string[] = [];
  if (waitMs > maxWaitMs) problems.push(`a call of a new key waited ${waitMs} ms`);
  if (longestMs > maxWaitMs) problems.push(`rateLimit waited ${longestMs} ms for Redis`);
  const refused = called.filter((operation) => outcomeOf(operation) === 'RATE_LIMITED').length;
  if (refused > 0) problems.push(`${refused} calls of new keys were refused`);
  const measured = `longest wait ${waitMs} ms, of rateLimit ${longestMs} ms`;
  const operations = [...load.operations, ...called];
  return judge({ trial, operations, maxRefusals, used: { plan, key: KEY, fromMs, atLeast }, measured, problems });
}

/** Asks a replica again and again for a key's quota, which reads the account in Redis; returns the longest wait. */
async function watchQuota(endpoint: () => string, signal: AbortSignal): Promise<number> {
  let longestMs = 0;
  while (!signal.aborted) {
    const startedMs = performance.now();
    // A replica that is restarted gives no response.
    const isAnswered = await askDayUsed(endpoint(), 'watched').then(Number.isFinite, () => false);
    if (isAnswered) longestMs = Math.max(longestMs, Math.round(performance.now() - startedMs));
    await setTimeout(ASK_EVERY_MS);
  }
  return longestMs;
}

/** Calls with keys that were never used: no plan keeps them waiting, so they wait for Redis alone. */
async function callAsStrangers(endpoints: readonly (() => string)[], signal: AbortSignal): Promise<Operation[]> {
  const operations: Operation[] = [];
  const calls: Promise<unknown>[] = [];
  while (!signal.aborted) {
    const key = `stranger-${calls.length}`;
    const endpoint = endpoints[calls.length % endpoints.length]?.() ?? '';
    calls.push(createPet(endpoint, { key, pet: { name: key, categoryId: '1' }, waitSeconds: 20, operations }));
    await setTimeout(STRANGER_EVERY_MS);
  }
  await Promise.all(calls);
  return operations;
}

/** Whether it is a moment of a strike, or shortly after one. */
function isStruck(atMs: number): boolean {
  return STRIKES_MS.some(([beginMs, endMs]) => atMs >= beginMs && atMs < endMs + AFTERMATH_MS);
}

/** From the client's start to the upstream's arrival, at most. */
function longestWaitMs(
  operations: readonly Operation[],
  { log }: PetApi,
  upstreamTime: (ms: number) => number,
): number {
  const arrivedAtMs = new Map(log.map(({ key, atMs }) => [key, atMs]));
  const waits = operations.map(({ key, startedMs }) => (arrivedAtMs.get(key) ?? 0) - upstreamTime(startedMs));
  return Math.round(Math.max(0, ...waits));
}
