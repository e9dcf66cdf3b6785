import { createWorld } from '../../support/world.ts';
import type { Contender } from './contenders.ts';
import { KEY } from './upstreams.ts';
import type { LimitedUpstream } from './upstreams.ts';
import type { PetApi } from '../../support/pet-api/pet-api.ts';

/** What a job of some hours came to. */
export interface Outcome {
  /** Pets that were added. */
  readonly created: number;
  /** Calls that were answered 429. */
  readonly refused: number;
  /** How often an API that bans for more than five 429s within a minute would have banned the key. */
  readonly bans: number;
  /** 429s after no other one for ten seconds, of each day. */
  readonly incidents: readonly number[];
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MINUTE_MS = 60_000;
const MAX_REFUSED_A_MINUTE = 5;
const INCIDENT_MS = 10_000;
/** What the job adds: some each three minutes, and many at once each hour. */
const EACH_3_MINUTES = 3;
const EACH_HOUR = 45;

export interface JobOptions {
  readonly hours?: number;
  readonly seed?: number;
  readonly each3Minutes?: number;
  readonly eachHour?: number;
}

/** Runs the job against an upstream, on virtual time. */
export async function runJob(
  upstream: LimitedUpstream,
  start: (petApi: PetApi) => Contender,
  { hours = 26, seed = 1, each3Minutes = EACH_3_MINUTES, eachHour = EACH_HOUR }: JobOptions = {},
): Promise<Outcome> {
  await using world = await createWorld({
    seed,
    startsAt: '2026-11-21T00:00:10Z',
    latencyMs: [20, 60],
    keys: { [KEY]: upstream.plan },
  });
  const { petApi, nowMs: startMs } = world;
  petApi.fault = upstream.fault?.();
  upstream.begin?.(petApi, startMs, hours);
  const contenders = [start(petApi)];
  for (const afterMs of upstream.restartsAtMs ?? []) {
    setTimeout(() => {
      void contenders.at(-1)?.stop();
      contenders.push(start(petApi));
    }, afterMs);
  }

  const jobs = new Set<Promise<unknown>>();
  const create = () => {
    const job = Promise.resolve(contenders.at(-1)?.create());
    jobs.add(job);
    void job.finally(() => jobs.delete(job));
  };
  for (let minute = 0; minute < hours * 60; minute += 1) {
    if (minute % 3 === 0) for (let call = 0; call < each3Minutes; call += 1) create();
    if (minute % 60 === 0) for (let call = 0; call < eachHour; call += 1) create();
    await world.pass(MINUTE_MS);
  }
  await world.until(Promise.all(jobs));
  await world.until(Promise.all(contenders.map((contender) => contender.stop())));

  const refusedAtMs = petApi.log.filter(({ status }) => status === 429).map(({ atMs }) => atMs);
  return {
    created: petApi.log.filter(({ status }) => status === 201).length,
    refused: refusedAtMs.length,
    bans: countBans(refusedAtMs),
    incidents: countIncidents(refusedAtMs, startMs),
  };
}

function countBans(refusedAtMs: readonly number[]): number {
  let bans = 0;
  let sinceMs: number[] = [];
  for (const atMs of refusedAtMs) {
    sinceMs = [...sinceMs.filter((other) => other > atMs - MINUTE_MS), atMs];
    if (sinceMs.length <= MAX_REFUSED_A_MINUTE) continue;
    bans += 1;
    sinceMs = [];
  }
  return bans;
}

function countIncidents(refusedAtMs: readonly number[], startMs: number): readonly number[] {
  const days: number[] = [];
  let lastMs = -Infinity;
  for (const atMs of refusedAtMs) {
    const day = Math.floor((atMs - startMs) / DAY_MS);
    if (atMs > lastMs + INCIDENT_MS) days[day] = (days[day] ?? 0) + 1;
    lastMs = atMs;
  }
  return Array.from(days, (count) => count ?? 0);
}
