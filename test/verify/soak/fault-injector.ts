import { setTimeout } from 'node:timers/promises';
import type { FaultProxy } from '../../support/fault-proxy.ts';
import type { FaultKind, Faults } from '../../support/faults.ts';
import type { PetApi } from '../../support/pet-api.ts';
import { between } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import { mixedFaults } from '../../support/wire-fault.ts';
import type { WatchedFleet } from './watched-fleet.ts';

/** Injects faults by chance, one or several at a time, with quiet times in between. */
export interface FaultInjector {
  /** How often each fault was injected. */
  readonly injected: Readonly<Record<string, number>>;
  /** Repairs everything and injects no more. */
  stop(): Promise<void>;
}

export interface InjectorOptions {
  readonly parts: Parts;
  readonly random: Random;
  /** How long the run is, in milliseconds: a short run has short faults. */
  readonly forMs: number;
  onFault(text: string): void;
}

/** All that can be harmed. */
export interface Parts {
  readonly faults: Faults;
  readonly fleet: WatchedFleet;
  readonly petApi: PetApi;
  /** Between petql and the pet API. */
  readonly upstreamProxy: FaultProxy;
  /** Undefined where one process has a state file. */
  readonly redis: { readonly server: RedisServer; readonly proxy: FaultProxy } | undefined;
}

interface Harm {
  readonly name: string;
  /** Of one group, there is one at a time: they would repair each other. */
  readonly group: 'redis' | 'replica' | 'upstream' | 'wire';
  inflict(scene: Scene): Promise<unknown>;
}

interface Scene extends Parts {
  readonly random: Random;
  /** Settles when it is over. */
  hold(): Promise<void>;
}

const MAX_AT_A_TIME = 3;
const MAX_QUIET_MS = 15_000;
const MAX_FAULT_MS = 12_000;
const MAX_LONG_FAULT_MS = 30_000;

export function startFaultInjector({ parts, random, forMs, onFault }: InjectorOptions): FaultInjector {
  const stopping = new AbortController();
  const harms = HARMS.filter(({ group }) => group !== 'redis' || parts.redis);
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
    await inflict({ ...parts, random, hold: () => pause(holdMs) });
  }

  async function pause(ms: number): Promise<void> {
    await setTimeout(ms, undefined, { signal: stopping.signal }).catch(() => {});
  }
}

const STATUSES = [500, 502, 503, 504] as const;

const HARMS: readonly Harm[] = [
  wire('upstream far away', ({ upstreamProxy, random }) =>
    upstreamProxy.setFault({ latencyMs: between(random, 50, 900) }),
  ),
  wire('upstream cut off, by half', ({ upstreamProxy, random }) =>
    upstreamProxy.setFault(
      mixedFaults(random, [
        [0.1, { resetAt: 'request' }],
        [0.1, { resetAt: 'answer' }],
        [0.05, { resetAt: 'headers' }],
        [0.05, { resetAt: 'body' }],
        [0.1, { cutAfterBytes: 300 }],
        [0.05, { silent: 'request' }],
        [0.05, { silent: 'answer' }],
      ]),
    ),
  ),
  wire('upstream half open', ({ upstreamProxy, random }) =>
    upstreamProxy.setFault({ silent: random() < 0.5 ? 'request' : 'answer' }),
  ),
  wire('upstream sends slowly', ({ upstreamProxy }) => upstreamProxy.setFault({ bytesPerSecond: 5_000 })),
  noted('wire', 'upstream unreachable', 'upstream', async ({ upstreamProxy, hold }) => {
    await upstreamProxy.refuse();
    await hold();
    await upstreamProxy.accept();
  }),
  wire('upstream ends connections', ({ upstreamProxy, random }) =>
    upstreamProxy.endConnections(random() < 0.5 ? 'reset' : 'close'),
  ),
  // Half of the calls that fail are carried out.
  noted('upstream', 'upstream fails', 'upstream', async ({ petApi, random, hold }) => {
    const share = 0.3 + random() * 0.7;
    petApi.fault = () =>
      random() < share ? { status: STATUSES[between(random, 0, 3)] ?? 500, isCarriedOut: random() < 0.5 } : undefined;
    await hold();
    petApi.fault = () => undefined;
  }),
  ofRedis('Redis killed', async ({ server }, { hold }) => {
    await server.kill();
    await hold();
    await server.start();
  }),
  ofRedis('Redis frozen', async ({ server }, { hold }) => {
    server.freeze();
    await hold();
    server.thaw();
  }),
  ofRedis('Redis emptied', async ({ server }, { faults }) => {
    const over = faults.begin('emptied');
    await server.command('FLUSHALL');
    over();
  }),
  ofRedis('Redis slow', async ({ proxy }, { random, hold }) => {
    proxy.setFault({ latencyMs: between(random, 20, 400) });
    await hold();
    proxy.setFault(undefined);
  }),
  ofRedis('Redis full', async ({ server }, { hold }) => {
    await server.command('CONFIG', 'SET', 'maxmemory', '1');
    await hold();
    await server.command('CONFIG', 'SET', 'maxmemory', '0');
  }),
  // The last of several is left alone, so that there is one whose levels are those of the whole run.
  ofReplica('SIGTERM', 1, ({ fleet }, index) => fleet.stop(index)),
  ofReplica('kill -9', 1, ({ fleet }, index) => fleet.kill(index)),
  ofReplica('SIGSTOP', 0, ({ fleet, hold }, index) => fleet.freeze(index, hold())),
  ofReplica('clock jumps', 0, async ({ fleet }, index) => fleet.jumpClock(index)),
];

function wire(name: string, begin: (scene: Scene) => unknown): Harm {
  return noted('wire', name, 'upstream', async (scene) => {
    await begin(scene);
    await scene.hold();
    scene.upstreamProxy.setFault(undefined);
    // What the faults have left behind ends with them.
    scene.upstreamProxy.endConnections('reset');
  });
}

function ofRedis(name: string, inflict: (redis: NonNullable<Parts['redis']>, scene: Scene) => Promise<void>): Harm {
  return noted('redis', name, 'redis', async (scene) => {
    if (scene.redis) await inflict(scene.redis, scene);
  });
}

function ofReplica(name: string, spared: number, inflict: (scene: Scene, index: number) => Promise<void>): Harm {
  return {
    name,
    group: 'replica',
    inflict: (scene) => inflict(scene, between(scene.random, 0, Math.max(0, scene.fleet.size - 1 - spared))),
  };
}

function noted(group: Harm['group'], name: string, kind: FaultKind, inflict: (scene: Scene) => Promise<void>): Harm {
  return {
    name,
    group,
    async inflict(scene) {
      const over = scene.faults.begin(kind);
      await inflict(scene);
      over();
    },
  };
}
