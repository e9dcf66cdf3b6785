import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { redisIsHere } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { askDayUsed } from './ask-day-used.ts';
import type { ClientRequest } from './history.ts';
import { send, startLoad } from './load.ts';
import { openBench } from './scenario.ts';
import { aheadForMinuteIn, judge, nextMinute, startTrial, untilUpstream } from './trial.ts';
import type { Trial } from './trial.ts';

// What `npm run prove` tries for minutes, in short, for what must never happen.

const FREE = { perMinute: 60, perDay: 1_000, windows: 'fixed' } as const;
const KEY = 'a-key';
const SEED = Number(process.env['FUZZ_SEED'] ?? Date.now() % 1_000_000);
/** Where the processes start so slowly that they miss the minute, the next one is waited for. */
const TIMEOUT_MS = 120_000;
/** Enough for three processes to start and to use up the minute before. */
const MINUTE_IN_MS = 11_000;

const arrivedSince = ({ upstream }: Trial, fromMs: number) =>
  upstream.arrivals.filter(({ atMs }) => atMs >= fromMs).length;
const namesOf = ({ upstream }: Trial) => upstream.arrivals.map(({ name }) => name);

test.skipIf(!redisIsHere).concurrent(
  'three replicas that share a Redis use a minute up and meet no 429',
  async () => {
    await using bench = openBench(SEED);
    const upstreamAheadMs = aheadForMinuteIn(MINUTE_IN_MS);
    const trial = await startTrial(bench, { plan: FREE, replicas: 3, upstreamAheadMs });
    const { upstream, replicas } = trial;
    const minuteMs = nextMinute(upstream);
    const load = startLoad({ endpoints: replicas.endpoints, key: KEY, clientsPerReplica: 4, random: bench.random });
    await until(() => arrivedSince(trial, minuteMs) === 60);
    await load.stop();
    const { refusals, problems } = judge({ arrivals: upstream.arrivals, requests: load.requests, plan: FREE });
    expect({ refusals, problems }).toEqual({ refusals: 0, problems: [] });
  },
  TIMEOUT_MS,
);

test.skipIf(!redisIsHere).concurrent(
  'three replicas go over a minute without Redis, and on with it',
  async () => {
    await using bench = openBench(SEED + 1);
    const upstreamAheadMs = aheadForMinuteIn(MINUTE_IN_MS);
    const trial = await startTrial(bench, { plan: FREE, replicas: 3, upstreamAheadMs });
    const { upstream, replicas, redis } = trial;
    const minuteMs = nextMinute(upstream);
    const load = startLoad({ endpoints: replicas.endpoints, key: KEY, clientsPerReplica: 4, random: bench.random });
    await untilUpstream(upstream, minuteMs - 2_000);
    await redis?.kill();
    await until(() => arrivedSince(trial, minuteMs) >= 20);
    await redis?.start();
    await until(() => arrivedSince(trial, minuteMs) >= 45);
    await load.stop();
    const { arrivals } = upstream;
    const { refusals, problems } = judge({ arrivals, requests: load.requests, plan: FREE, mostRefusals: 1 });
    expect(refusals).toBeLessThanOrEqual(1);
    expect(problems).toEqual([]);
  },
  TIMEOUT_MS,
);

test.concurrent(
  'what a killed process has spent of the day is not spent again',
  async () => {
    await using bench = openBench(SEED + 2);
    const folder = await mkdtemp(join(tmpdir(), 'petql-prove-'));
    bench.use({ [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) });
    const plan = { perMinute: 1_000, perDay: 40, windows: 'fixed' } as const;
    const args = ['--plan', '1000/40', '--state-file', join(folder, 'state.db')];
    const { upstream, replicas } = await startTrial(bench, { plan, replicas: 1, args, latencyMs: [40, 80] });
    const { endpoints } = replicas;
    const load = startLoad({ endpoints, key: KEY, clientsPerReplica: 2, random: bench.random, waitSeconds: () => 5 });
    await until(() => upstream.arrivals.length >= 32);
    await replicas.kill(0);
    await replicas.restart(0);
    const refused = () => load.requests.some(({ settlements }) => settlements[0]?.outcome === 'refused');
    await until(refused);
    await load.stop();
    const { refusals, problems } = judge({ arrivals: upstream.arrivals, requests: load.requests, plan });
    expect({ refusals, problems }).toEqual({ refusals: 0, problems: [] });
    expect(upstream.arrivals.length).toBeGreaterThan(32);
  },
  TIMEOUT_MS,
);

test.concurrent(
  'on SIGTERM those who wait are refused, what is under way is answered, and nothing is lost',
  async () => {
    await using bench = openBench(SEED + 3);
    const folder = await mkdtemp(join(tmpdir(), 'petql-prove-'));
    bench.use({ [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) });
    const args = ['--state-file', join(folder, 'state.db')];
    const plan = { ...FREE, perMinute: 300 };
    const { upstream, replicas } = await startTrial(bench, { plan, replicas: 1, args, latencyMs: [1_000, 1_000] });
    const requests: ClientRequest[] = [];
    const endpoint = replicas.process(0).address;
    const calls = Array.from({ length: 80 }, (_, index) =>
      send({ endpoint, key: KEY, name: `call ${index}`, waitSeconds: 60, requests }),
    );
    // The probe, and then as many as go at a time.
    await until(() => upstream.arrivals.length === 51);
    replicas.process(0).kill('SIGTERM');
    const outcomes = Map.groupBy(await Promise.all(calls), ({ outcome }) => outcome);
    expect(await replicas.process(0).exited).toBe(0);
    expect([outcomes.get('created')?.length, outcomes.get('refused')?.length]).toEqual([51, 29]);
    expect(judge({ arrivals: upstream.arrivals, requests, plan }).problems).toEqual([]);
    await replicas.restart(0);
    expect(await askDayUsed(replicas.process(0).address, KEY)).toBe(51);
  },
  TIMEOUT_MS,
);

test.concurrent(
  'nothing is sent for those who go away while they wait',
  async () => {
    await using bench = openBench(SEED + 4);
    const trial = await startTrial(bench, { plan: FREE, replicas: 1, upstreamAheadMs: aheadForMinuteIn(MINUTE_IN_MS) });
    const requests: ClientRequest[] = [];
    const endpoint = trial.replicas.process(0).address;
    const call = (name: string, signal?: AbortSignal) =>
      send({ endpoint, key: KEY, name, waitSeconds: 60, requests, ...(signal ? { signal } : {}) });
    const early = Array.from({ length: 60 }, (_, index) => `early ${index}`);
    await Promise.all(early.map((name) => call(name)));
    const leaving = new AbortController();
    const goes = Array.from({ length: 36 }, (_, index) => call(`goes ${index}`, leaving.signal));
    const stays = ['stays 1', 'stays 2', 'stays 3', 'stays 4'].map((name) => call(name));
    await untilUpstream(trial.upstream, nextMinute(trial.upstream) - 1_000);
    leaving.abort();
    expect(new Set((await Promise.all(goes)).map(({ outcome }) => outcome))).toEqual(new Set(['aborted']));
    expect((await Promise.all(stays)).map(({ outcome }) => outcome)).toEqual(stays.map(() => 'created'));
    expect(namesOf(trial).filter((name) => name?.startsWith('goes'))).toEqual([]);
    expect(judge({ arrivals: trial.upstream.arrivals, requests, plan: FREE }).problems).toEqual([]);
  },
  TIMEOUT_MS,
);
