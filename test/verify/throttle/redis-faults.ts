import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/common/plan.ts';
import { askDayUsed, createPet } from '../../support/client.ts';
import { startLoad } from '../../support/load.ts';
import { outcomeOf } from '../../support/operation.ts';
import type { Operation } from '../../support/operation.ts';
import { REDIS_FAULTS } from '../redis-faults.ts';
import type { RedisFaultName } from '../redis-faults.ts';
import type { Check } from '../suite.ts';
import { MINUTE_MS, judge, nextMinute, scenario, startTrial, untilUpstream } from './scenario.ts';
import type { Findings, Scene } from './scenario.ts';

const KEY = 'pro-key';
const REPLICAS = 3;
/** Few clients and slow responses: a window's calls take some twenty seconds, so that a fault strikes among them. */
const CLIENTS_PER_REPLICA = 2;
const LATENCY_MS = [300, 500] as const;
const PROBE_EVERY_MS = 250;
const MINUTES = 4;
/** Each fault strikes twice: for eight seconds in the middle of a window's calls, and for fifteen around a window's end. */
const STRIKES_MS = [
  [5_000, 13_000],
  [115_000, 130_000],
] as const;
const AFTERMATH_MS = 5_000;
/** In which the window after the measured ones begins, which ends the last of them. */
const BEGUN_MS = 5_000;

interface Goals {
  /** 429s of the plan. Default 1. */
  readonly maxRefusals?: number;
  /** The share of the plan that is used. Default 0.85. */
  readonly atLeast?: number;
  /** How long a call with a new key waits. Default 1 s. */
  readonly maxWaitMs?: number;
}

const GOALS: Partial<Record<RedisFaultName, Goals>> = { slow: { maxRefusals: 0, atLeast: 0.5, maxWaitMs: 5_000 } };

export const redisFaults: readonly Check[] = (Object.keys(REDIS_FAULTS) as RedisFaultName[]).map((fault) => {
  const { maxRefusals = 1, atLeast = 0.85, maxWaitMs = 1_000 } = GOALS[fault] ?? {};
  const goal = `at most ${maxRefusals} × 429, ${atLeast * 100} % used, nothing waits over ${maxWaitMs / 1_000} s for Redis`;
  return scenario({ name: `redis-${fault}`, goal, processes: REPLICAS }, (scene) =>
    suffer(scene, fault, { maxRefusals, atLeast, maxWaitMs }),
  );
});

async function suffer(scene: Scene, fault: RedisFaultName, goals: Required<Goals>): Promise<Findings> {
  const { maxRefusals, atLeast, maxWaitMs } = goals;
  const plan = PLANS.pro;
  const trial = await startTrial(scene, { plan, replicas: REPLICAS, latencyMs: LATENCY_MS });
  const { petApi, fleet, redis } = trial;
  if (!redis) throw new Error('expected a Redis');
  const { endpoints } = fleet;
  const load = startLoad({ endpoints, key: KEY, clientsPerReplica: CLIENTS_PER_REPLICA, random: scene.random });
  const stopping = new AbortController();
  const probing = probe(endpoints, stopping.signal);
  const fromMs = nextMinute(petApi);
  for (const [strike, [beginMs, endMs]] of STRIKES_MS.entries()) {
    await untilUpstream(petApi, fromMs + beginMs);
    await REDIS_FAULTS[fault].begin(redis);
    await untilUpstream(petApi, fromMs + endMs);
    await REDIS_FAULTS[fault].end(redis);
    // A replica that starts now knows only what the others have put back.
    if (fault === 'emptied') await fleet.restart([strike], 'SIGKILL');
  }
  await untilUpstream(petApi, fromMs + MINUTES * MINUTE_MS + BEGUN_MS);
  stopping.abort();
  await load.stop();
  const { creates, longestQuotaMs } = await probing;

  const aheadMs = petApi.now() - performance.now();
  const arrivedAtMs = new Map(petApi.log.map(({ key, atMs }) => [key, atMs - aheadMs]));
  const struck = creates.filter(({ startedMs }) => isStruck(startedMs + aheadMs - fromMs));
  const waitsMs = struck.map(({ key, startedMs }) => (arrivedAtMs.get(key) ?? 0) - startedMs);
  const longestMs = Math.round(Math.max(0, ...waitsMs));
  const refused = creates.filter((operation) => outcomeOf(operation) === 'RATE_LIMITED').length;
  const problems = [
    longestMs > maxWaitMs && `a call of a new key waited ${longestMs} ms`,
    longestQuotaMs > maxWaitMs && `rateLimit waited ${longestQuotaMs} ms for Redis`,
    refused > 0 && `${refused} calls of new keys were refused`,
  ];
  const measured = `longest wait ${longestMs} ms, of rateLimit ${longestQuotaMs} ms`;
  const operations = [...load.operations, ...creates];
  return judge({ trial, operations, maxRefusals, used: { plan, key: KEY, fromMs, atLeast }, measured, problems });
}

/** Sends what waits for Redis alone: creates with keys that were never used, so that no plan delays them, and `rateLimit`. */
async function probe(endpoints: readonly (() => string)[], signal: AbortSignal) {
  const creates: Operation[] = [];
  const probes: Promise<unknown>[] = [];
  let longestQuotaMs = 0;
  const timeQuota = async (endpoint: string) => {
    const startedMs = performance.now();
    await askDayUsed(endpoint, 'watched');
    longestQuotaMs = Math.max(longestQuotaMs, Math.round(performance.now() - startedMs));
  };
  for (let number = 0; !signal.aborted; number += 1) {
    const endpoint = endpoints[number % endpoints.length]?.() ?? '';
    const key = `new-${number}`;
    const pet = { name: key, categoryId: '1' };
    probes.push(createPet(endpoint, { key, pet, waitSeconds: 20, operations: creates }));
    // A replica that is restarted gives no response.
    probes.push(timeQuota(endpoint).catch(() => {}));
    await setTimeout(PROBE_EVERY_MS);
  }
  await Promise.all(probes);
  return { creates, longestQuotaMs };
}

/** Whether it is a moment of a strike, or shortly after one. */
function isStruck(atMs: number): boolean {
  return STRIKES_MS.some(([beginMs, endMs]) => atMs >= beginMs && atMs < endMs + AFTERMATH_MS);
}
