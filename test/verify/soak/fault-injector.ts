import { setTimeout } from 'node:timers/promises';
import { between } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import { mixedFaults } from '../../support/wire-fault.ts';
import type { WireFault } from '../../support/wire-fault.ts';
import type { Deployment } from '../deployment.ts';
import { REDIS_FAULTS } from '../redis-faults.ts';
import type { RedisFault } from '../redis-faults.ts';

/** Injects faults by chance, one or several at a time, with quiet times in between. */
export interface FaultInjector {
  /** How often each fault was injected. */
  readonly injected: Readonly<Record<string, number>>;
  /** Repairs everything and injects no more. */
  readonly stop: () => Promise<void>;
}

export interface InjectorOptions {
  readonly deployment: Deployment;
  readonly random: Random;
  /** How long the run is, in milliseconds: a short run has short faults. */
  readonly forMs: number;
  readonly onFault: (text: string) => void;
}

interface Harm {
  readonly name: string;
  /** Of one group, there is one at a time: they would repair each other. */
  readonly group: 'redis' | 'replica' | 'upstream' | 'wire';
  readonly inflict: (scene: Scene) => unknown;
}

interface Scene extends Deployment {
  readonly random: Random;
  /** Settles when it is over. */
  readonly hold: () => Promise<void>;
}

const MAX_AT_A_TIME = 3;
const MAX_QUIET_MS = 15_000;
const MAX_FAULT_MS = 12_000;
const MAX_LONG_FAULT_MS = 30_000;

export function startFaultInjector({ deployment, random, forMs, onFault }: InjectorOptions): FaultInjector {
  const stopping = new AbortController();
  const harms = HARMS.filter(({ group }) => group !== 'redis' || deployment.redis);
  const injected: Record<string, number> = {};
  const quietMs = Math.min(MAX_QUIET_MS, forMs / 12);
  const faultMs = Math.min(MAX_FAULT_MS, forMs / 8);
  const running = run();
  return {
    injected,
    async stop() {
      stopping.abort();
      await running;
    },
  };

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await pause(between(random, quietMs / 4, quietMs));
      const chosen = new Map<string, Harm>();
      for (let times = between(random, 1, MAX_AT_A_TIME); times > 0; times -= 1) {
        const harm = harms[between(random, 0, harms.length - 1)];
        if (harm && !chosen.has(harm.group)) chosen.set(harm.group, harm);
      }
      await Promise.all([...chosen.values()].map(inject));
    }
  }

  async function inject({ name, inflict }: Harm): Promise<void> {
    await pause(between(random, 0, faultMs / 2));
    if (stopping.signal.aborted) return;
    injected[name] = (injected[name] ?? 0) + 1;
    // Now and then much longer, where the run is long.
    const isLong = random() < 0.1;
    const holdMs = isLong ? Math.min(MAX_LONG_FAULT_MS, faultMs * 3) : between(random, faultMs / 8, faultMs);
    onFault(`${name} for ${Math.round(holdMs)} ms`);
    await inflict({ ...deployment, random, hold: () => pause(holdMs) });
  }

  async function pause(ms: number): Promise<void> {
    await setTimeout(ms, undefined, { signal: stopping.signal }).catch(() => {});
  }
}

const CUT_OFF: readonly (readonly [share: number, fault: WireFault])[] = [
  [0.1, { resetAt: 'request' }],
  [0.1, { resetAt: 'answer' }],
  [0.05, { resetAt: 'headers' }],
  [0.05, { resetAt: 'body' }],
  [0.1, { cutAfterBytes: 300 }],
  [0.05, { silent: 'request' }],
  [0.05, { silent: 'answer' }],
];
const STATUSES = [500, 502, 503, 504] as const;

const HARMS: readonly Harm[] = [
  onTheWire('far away', ({ upstreamProxy, random }) => upstreamProxy.setFault({ latencyMs: between(random, 50, 900) })),
  onTheWire('cut off, by half', ({ upstreamProxy, random }) => upstreamProxy.setFault(mixedFaults(random, CUT_OFF))),
  onTheWire('half open', ({ upstreamProxy, random }) =>
    upstreamProxy.setFault({ silent: random() < 0.5 ? 'request' : 'answer' }),
  ),
  onTheWire('sends slowly', ({ upstreamProxy }) => upstreamProxy.setFault({ bytesPerSecond: 5_000 })),
  onTheWire('unreachable', ({ upstreamProxy }) => upstreamProxy.refuse()),
  onTheWire('ends connections', ({ upstreamProxy, random }) =>
    upstreamProxy.endConnections(random() < 0.5 ? 'reset' : 'close'),
  ),
  {
    name: 'upstream fails',
    group: 'upstream',
    async inflict({ petApi, faults, random, hold }) {
      const over = faults.begin('upstream');
      const share = 0.3 + random() * 0.7;
      // Half of the calls that fail are carried out.
      const fail = () => ({ status: STATUSES[between(random, 0, 3)] ?? 500, isCarriedOut: random() < 0.5 });
      petApi.fault = () => (random() < share ? fail() : undefined);
      await hold();
      petApi.fault = () => undefined;
      over();
    },
  },
  ...Object.entries(REDIS_FAULTS).map(([name, fault]) => ofRedis(name, fault)),
  // The last of several is left alone, so that there is one whose levels are those of the whole run.
  ofReplica('SIGTERM', 1, ({ fleet }, index) => fleet.restart([index], 'SIGTERM')),
  ofReplica('kill -9', 1, ({ fleet }, index) => fleet.restart([index], 'SIGKILL')),
  ofReplica('SIGSTOP', 0, ({ fleet, hold }, index) => fleet.freeze(index, hold())),
  ofReplica('clock jumps', 0, ({ fleet }, index) => fleet.replica(index).process.kill('SIGUSR2')),
];

function onTheWire(name: string, begin: (scene: Scene) => unknown): Harm {
  return {
    name: `upstream ${name}`,
    group: 'wire',
    async inflict(scene) {
      const { upstreamProxy, faults, hold } = scene;
      const over = faults.begin('upstream');
      await begin(scene);
      await hold();
      upstreamProxy.setFault(undefined);
      // What the faults have left behind ends with them.
      await upstreamProxy.close();
      await upstreamProxy.accept();
      over();
    },
  };
}

function ofRedis(name: string, { begin, end }: RedisFault): Harm {
  return {
    name: `Redis ${name}`,
    group: 'redis',
    async inflict({ redis, faults, hold }) {
      if (!redis) return;
      const overs = [faults.begin('redis'), ...(name === 'emptied' ? [faults.begin('emptied')] : [])];
      await begin(redis);
      if (name !== 'emptied') await hold();
      await end(redis);
      for (const over of overs) over();
    },
  };
}

/** @param spared how many of the last replicas are never harmed so. */
function ofReplica(name: string, spared: number, inflict: (scene: Scene, index: number) => unknown): Harm {
  return {
    name,
    group: 'replica',
    inflict: (scene) => {
      const last = Math.max(0, scene.fleet.replicas.length - 1 - spared);
      return inflict(scene, between(scene.random, 0, last));
    },
  };
}
