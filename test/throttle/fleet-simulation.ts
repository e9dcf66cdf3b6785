import { vi } from 'vitest';
import { steadyTime, systemClock } from '../../src/clock.ts';
import { RedisAway } from '../../src/store/redis.ts';
import type { RedisStore } from '../../src/store/redis.ts';
import { createFailoverLedger } from '../../src/throttle/failover-ledger.ts';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules, LedgerState } from '../../src/throttle/ledger-state.ts';
import type { Standing } from '../../src/throttle/ledger.ts';
import type { RedisLedger } from '../../src/throttle/redis-ledger.ts';
import { createReplicas } from '../../src/throttle/replicas.ts';
import { createThrottle } from '../../src/throttle/throttle.ts';
import type { Throttle } from '../../src/throttle/throttle.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import { between } from '../prove/random.ts';
import type { Random } from '../prove/random.ts';
import { later } from '../writes/simulation.ts';
import { createStrictPlan } from './strict-plan.ts';
import type { StrictPlan, StrictPlanOptions } from './strict-plan.ts';

/** Replicas with the throttle that they have, one key, and a Redis that can be harmed; all in fake time. */
export interface FleetSimulation {
  readonly upstream: StrictPlan;
  /** Gone, as after kill -9: what it had under way arrives all the same. */
  kill(replica: number): void;
  /** A new process, in the place of the one that was killed. */
  start(replica: number): void;
  harm(harm: RedisHarm): void;
  /** So many calls at once, at this replica, each of which may wait for so long. */
  ask(replica: number, calls: number, waitMs: number): void;
  /** Ends everything. */
  close(): Promise<void>;
}

/** `refuses`: there is no connection. `hangs`: no answer ever comes. `slow`: each takes so long. `emptied`: it lost what it held. */
export type RedisHarm = 'emptied' | 'hangs' | 'none' | 'refuses' | { readonly slowMs: number };

export interface FleetSimulationOptions {
  readonly replicas: number;
  readonly plan: StrictPlanOptions;
  readonly random: Random;
  /** How long a call takes at most, there and back. */
  readonly callMs: number;
}

const COMMAND_MS = 500;

export function createFleetSimulation({ replicas, plan, random, callMs }: FleetSimulationOptions): FleetSimulation {
  const { perMinute, perDay } = plan;
  const rules: LedgerRules = { plan: { perMinute, perDay, known: true }, probeMs: 1_500 };
  const upstream = createStrictPlan(plan);
  const redis = createModelRedis(rules);
  const running = new Map<number, SimulatedReplica>();
  let started = 0;
  const fleet: FleetSimulation = {
    upstream,
    kill(replica) {
      running.get(replica)?.kill();
      running.delete(replica);
    },
    start(replica) {
      started += 1;
      running.set(replica, startReplica(`replica ${started}`));
    },
    harm: redis.harm,
    ask(replica, calls, waitMs) {
      for (let call = 0; call < calls; call += 1) running.get(replica)?.ask(waitMs);
    },
    async close() {
      for (const replica of running.values()) replica.kill();
      await vi.advanceTimersByTimeAsync(10_000);
    },
  };
  for (let replica = 0; replica < replicas; replica += 1) fleet.start(replica);
  return fleet;

  function startReplica(name: string): SimulatedReplica {
    let killed = false;
    const store = redis.connect();
    const heartbeats = createReplicas(store, name);
    const ledger = createFailoverLedger({
      shared: {
        exchange: (_key, request, id) =>
          killed ? Promise.reject(new RedisAway('killed')) : redis.exchange(name, request, id),
        close: async () => {},
      },
      replicas: heartbeats,
      rules,
      clock: systemClock,
      now: steadyTime(systemClock),
    });
    const upstreamClock = createUpstreamClock(systemClock);
    const throttle: Throttle = createThrottle({ apiKey: 'a key', ledger, upstreamClock, clock: systemClock });
    return {
      ask(waitMs) {
        const turn = { kind: 'read', deadlineMs: systemClock.elapsed() + waitMs } as const;
        void throttle.pass(turn, () => {
          // A process that is gone sends nothing.
          if (killed) return undefined;
          return travel();
        });
      },
      kill() {
        killed = true;
        heartbeats.close();
        void ledger.close();
        void throttle.close();
      },
    };
  }

  async function travel() {
    await later(between(random, 1, callMs / 2));
    const { status, headers } = upstream.arrive(Date.now());
    await later(between(random, 1, callMs / 2));
    const outcome =
      status === 200
        ? ({ kind: 'ok', value: undefined } as const)
        : ({ kind: status === 429 ? 'rate-limited' : 'forbidden' } as const);
    return { outcome, sent: true, rateLimit: headers };
  }
}

interface SimulatedReplica {
  ask(waitMs: number): void;
  kill(): void;
}

function createModelRedis(rules: LedgerRules) {
  let state: LedgerState | undefined;
  let generations = 0;
  let harmed: RedisHarm = 'none';
  let answers = new Map<string, { id: string | undefined; standing: Standing }>();
  let beats = new Map<string, number>();

  return {
    harm(harm: RedisHarm): void {
      if (harm !== 'emptied') return void (harmed = harm);
      state = undefined;
      answers = new Map();
      beats = new Map();
    },
    connect(): RedisStore {
      return {
        get connected() {
          return harmed !== 'refuses';
        },
        run: (_script, _key, name = '') => command(() => String(beat(name))),
        subscribe: () => () => {},
        close: () => {},
      };
    },
    exchange: (name: string, request: Parameters<RedisLedger['exchange']>[1], id?: string) =>
      command(() => carryOut(name, request, id)),
  };

  function beat(name: string): number {
    const nowMs = Date.now();
    beats.set(name, nowMs);
    for (const [other, atMs] of beats) if (nowMs - atMs > 10_000) beats.delete(other);
    return beats.size;
  }

  function carryOut(name: string, request: Parameters<RedisLedger['exchange']>[1], id: string | undefined): Standing {
    const last = answers.get(name);
    if (last && last.id === id) return last.standing;
    if (!state) generations += 1;
    state ??= newLedgerState(String(generations), rules);
    const standing = structuredClone(exchange(state, request, rules, Date.now()));
    answers.set(name, { id, standing });
    return standing;
  }

  function command<T>(carryOutNow: () => T): Promise<T> {
    if (harmed === 'refuses') return later(1).then(() => Promise.reject(new RedisAway('no connection')));
    if (harmed === 'hangs') return later(COMMAND_MS).then(() => Promise.reject(new RedisAway('Command timed out')));
    const halfMs = typeof harmed === 'object' ? harmed.slowMs / 2 : 1;
    const answer = later(halfMs).then(() => {
      const now = carryOutNow();
      return later(halfMs).then(() => now);
    });
    return Promise.race([answer, later(COMMAND_MS).then(() => Promise.reject(new RedisAway('Command timed out')))]);
  }
}
