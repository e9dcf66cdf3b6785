import type { FaultProxy } from '../faults/fault-proxy.ts';
import { mixedFaults } from '../faults/wire-fault.ts';
import { between } from '../prove/random.ts';
import type { Random } from '../prove/random.ts';
import type { RedisServer } from '../support/redis-server.ts';
import type { DisturbanceKind, Disturbances } from './disturbances.ts';
import type { FailingService } from './failing-service.ts';
import type { Fleet } from './fleet.ts';

/** All that can be harmed. */
export interface World {
  readonly disturbances: Disturbances;
  readonly fleet: Fleet;
  readonly service: FailingService;
  /** Between petql and the service. */
  readonly upstreamProxy: FaultProxy;
  /** Undefined for a process of its own. */
  readonly redis: { readonly server: RedisServer; readonly proxy: FaultProxy } | undefined;
}

export interface Trouble {
  readonly name: string;
  /** Of one group, there is one at a time. */
  readonly group: 'redis' | 'replica' | 'service' | 'wire';
  make(scene: Scene): Promise<void>;
}

export interface Scene extends World {
  readonly random: Random;
  /** Settles when it is over. */
  hold(): Promise<void>;
}

/** Those that there is something to be harmed by. */
export function troublesOf({ redis }: World): readonly Trouble[] {
  return TROUBLES.filter(({ group }) => group !== 'redis' || redis);
}

const TROUBLES: readonly Trouble[] = [
  wire('service far away', ({ upstreamProxy, random }) =>
    upstreamProxy.setFault({ latencyMs: between(random, 50, 900) }),
  ),
  wire('service cut off, by half', ({ upstreamProxy, random }) =>
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
  wire('service half open', ({ upstreamProxy, random }) =>
    upstreamProxy.setFault({ silent: random() < 0.5 ? 'request' : 'answer' }),
  ),
  wire('service slow to speak', ({ upstreamProxy }) => upstreamProxy.setFault({ bytesPerSecond: 5_000 })),
  trouble('wire', 'service unreachable', 'upstream', async ({ upstreamProxy, hold }) => {
    await upstreamProxy.refuse();
    await hold();
    await upstreamProxy.accept();
  }),
  wire('service ends connections', ({ upstreamProxy, random }) =>
    upstreamProxy.endConnections(random() < 0.5 ? 'reset' : 'close'),
  ),
  trouble('service', 'service fails', 'upstream', async ({ service, random, hold }) => {
    service.fail(0.3 + random() * 0.7);
    await hold();
    service.fail(0);
  }),
  ofRedis('Redis killed', async ({ server }, { hold }) => {
    await server.kill();
    await hold();
    await server.start();
  }),
  ofRedis('Redis stopped', async ({ server }, { hold }) => {
    server.freeze();
    await hold();
    server.thaw();
  }),
  ofRedis('Redis emptied', async ({ server }, { disturbances }) => {
    const over = disturbances.begin('emptied');
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
  ofReplica('SIGTERM', (fleet, index) => fleet.stop(index)),
  ofReplica('kill -9', (fleet, index) => fleet.kill(index)),
  {
    name: 'SIGSTOP',
    group: 'replica',
    make: ({ fleet, random, hold }) => fleet.freeze(between(random, 0, fleet.size - 1), hold()),
  },
  {
    name: 'clock jumps',
    group: 'replica',
    async make({ fleet, random }) {
      fleet.jumpClock(between(random, 0, fleet.size - 1));
    },
  },
];

function wire(name: string, begin: (scene: Scene) => unknown): Trouble {
  return trouble('wire', name, 'upstream', async (scene) => {
    await begin(scene);
    await scene.hold();
    scene.upstreamProxy.setFault(undefined);
    // What the faults have left behind ends with them.
    scene.upstreamProxy.endConnections('reset');
  });
}

function ofRedis(name: string, make: (redis: NonNullable<World['redis']>, scene: Scene) => Promise<void>): Trouble {
  return trouble('redis', name, 'redis', async (scene) => {
    if (scene.redis) await make(scene.redis, scene);
  });
}

function ofReplica(name: string, make: (fleet: Fleet, index: number) => Promise<void>): Trouble {
  return {
    name,
    group: 'replica',
    make: ({ fleet, random }) => make(fleet, between(random, 0, Math.max(0, fleet.size - 2))),
  };
}

function trouble(
  group: Trouble['group'],
  name: string,
  kind: DisturbanceKind,
  make: (scene: Scene) => Promise<void>,
): Trouble {
  return {
    name,
    group,
    async make(scene) {
      const over = scene.disturbances.begin(kind);
      await make(scene);
      over();
    },
  };
}
