import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/plan.ts';
import { startFaultProxy } from '../../faults/fault-proxy.ts';
import type { FaultProxy } from '../../faults/fault-proxy.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import type { ClientRequest } from '../history.ts';
import { send, startLoad } from '../load.ts';
import { watchLedger } from '../ledger-watch.ts';
import type { Bench, Findings, Scenario } from '../scenario.ts';
import type { StrictUpstream } from '../strict-upstream.ts';
import { judge, nextMinute, startTrial, untilUpstream } from '../trial.ts';
import type { Trial } from '../trial.ts';

const PLAN = { ...PLANS.pro, windows: 'fixed' } as const;
const KEY = 'pro-key';
const REPLICAS = 3;
const ENOUGH = 0.9;
const LONGEST_WAIT_MS = 1_000;
/** Few clients and slow answers: a window's calls take some twenty seconds, so that a fault strikes among them. */
const CLIENTS_PER_REPLICA = 2;
const LATENCY_MS = [300, 500] as const;
const STRANGER_EVERY_MS = 250;
const MINUTES = 4;
const AFTERMATH_MS = 5_000;

interface Faulty extends Trial {
  readonly redis: RedisServer;
  readonly proxy: FaultProxy;
}

interface Fault {
  begin(trial: Faulty, time: number): unknown;
  end(trial: Faulty, time: number): unknown;
}

/** Each strikes twice: for eight seconds in the midst of a window's calls, and for fifteen around a window's end. */
const STRIKES_MS = [
  [5_000, 13_000],
  [115_000, 130_000],
] as const;

const FAULTS: Readonly<Record<string, Fault>> = {
  killed: { begin: ({ redis }) => redis.kill(), end: ({ redis }) => redis.start() },
  stopped: { begin: ({ redis }) => redis.freeze(), end: ({ redis }) => redis.thaw() },
  emptied: {
    begin: ({ redis }) => redis.command('FLUSHALL'),
    // A replica that starts now knows of nothing but what the others have put back.
    async end({ replicas }, time) {
      await replicas.kill(time);
      await replicas.restart(time);
    },
  },
  slow: {
    begin: ({ proxy }, time) => proxy.setFault({ latencyMs: time === 0 ? 150 : 700 }),
    end: ({ proxy }) => proxy.setFault(undefined),
  },
  'read-only': {
    begin: ({ redis }) => redis.command('REPLICAOF', '127.0.0.1', '1'),
    end: ({ redis }) => redis.command('REPLICAOF', 'NO', 'ONE'),
  },
  'too-few-replicas': {
    begin: ({ redis }) => redis.command('CONFIG', 'SET', 'min-replicas-to-write', '3'),
    end: ({ redis }) => redis.command('CONFIG', 'SET', 'min-replicas-to-write', '0'),
  },
  'out-of-memory': {
    begin: ({ redis }) => redis.command('CONFIG', 'SET', 'maxmemory', '1'),
    end: ({ redis }) => redis.command('CONFIG', 'SET', 'maxmemory', '0'),
  },
};

export const redisFaults: readonly Scenario[] = Object.entries(FAULTS).map(([name, fault]) => ({
  name: `redis-${name}`,
  goal: 'at most one 429, at least 90 % used, nothing waits over 1 s for Redis',
  plan: 'pro',
  windows: PLAN.windows,
  replicas: REPLICAS,
  run: (bench: Bench) => suffer(bench, fault),
}));

async function suffer(bench: Bench, fault: Fault): Promise<Findings> {
  let proxy: FaultProxy | undefined;
  const trial = await startTrial(bench, {
    plan: PLAN,
    replicas: REPLICAS,
    latencyMs: LATENCY_MS,
    async redisUrl({ url }) {
      proxy = bench.use(await startFaultProxy({ target: url }));
      return proxy.url;
    },
  });
  const { upstream, replicas, redis } = trial;
  if (!redis || !proxy) throw new Error('expected a Redis');
  const { endpoints } = replicas;
  const load = startLoad({ endpoints, key: KEY, clientsPerReplica: CLIENTS_PER_REPLICA, random: bench.random });
  const strangers = startStrangers(endpoints);
  const watch = bench.use(watchLedger(proxy.url));
  const fromMs = nextMinute(upstream);
  for (const [time, [beginMs, endMs]] of STRIKES_MS.entries()) {
    await untilUpstream(upstream, fromMs + beginMs);
    await fault.begin({ ...trial, redis, proxy }, time);
    await untilUpstream(upstream, fromMs + endMs);
    await fault.end({ ...trial, redis, proxy }, time);
  }
  await untilUpstream(upstream, fromMs + MINUTES * 60_000);
  await Promise.all([load.stop(), strangers.stop()]);

  const struck = strangers.requests.filter((request) => isStruck(upstreamTime(request, upstream) - fromMs));
  const waitMs = longestWaitMs(struck, upstream);
  const problems: string[] = [];
  if (waitMs > LONGEST_WAIT_MS) problems.push(`a call of a new key waited ${waitMs} ms`);
  if (watch.longestMs > LONGEST_WAIT_MS) problems.push(`a ledger waited ${watch.longestMs} ms for Redis`);
  const turnedAway = strangers.requests.filter(({ settlements }) => settlements[0]?.outcome === 'refused').length;
  if (turnedAway > 0) problems.push(`${turnedAway} calls of new keys were refused`);
  return judge({
    arrivals: upstream.arrivals,
    requests: [...load.requests, ...strangers.requests],
    plan: PLAN,
    mostRefusals: 1,
    used: { span: { fromMs, minutes: MINUTES }, key: KEY, atLeast: ENOUGH },
    measured: `longest wait ${waitMs} ms, of a ledger ${watch.longestMs} ms`,
    problems,
  });
}

/** Calls with a key that nobody has used: no plan keeps them waiting, so what they wait for is Redis. */
function startStrangers(endpoints: readonly (() => string)[]) {
  const requests: ClientRequest[] = [];
  const calls: Promise<unknown>[] = [];
  const stopping = new AbortController();
  const running = (async () => {
    while (!stopping.signal.aborted) {
      const key = `stranger-${calls.length}`;
      const endpoint = endpoints[calls.length % endpoints.length]?.() ?? '';
      calls.push(send({ endpoint, key, name: key, waitSeconds: 20, requests }));
      await setTimeout(STRANGER_EVERY_MS);
    }
  })();
  return {
    requests,
    async stop() {
      stopping.abort();
      await running;
      await Promise.all(calls);
    },
  };
}

/** Whether it is a moment of a strike, or shortly after one. */
function isStruck(atMs: number): boolean {
  return STRIKES_MS.some(([beginMs, endMs]) => atMs >= beginMs && atMs < endMs + AFTERMATH_MS);
}

/** When the client began, by the upstream's clock. */
function upstreamTime({ startedMs }: ClientRequest, upstream: StrictUpstream): number {
  return startedMs + upstream.now() - performance.now();
}

/** From the client's start to the upstream's arrival, at most. */
function longestWaitMs(requests: readonly ClientRequest[], upstream: StrictUpstream): number {
  const arrivedAtMs = new Map(upstream.arrivals.map(({ name, atMs }) => [name, atMs]));
  const waits = requests.map((request) => {
    const arrivedMs = arrivedAtMs.get(request.name);
    return arrivedMs === undefined ? 0 : arrivedMs - upstreamTime(request, upstream);
  });
  return Math.round(Math.max(0, ...waits));
}
