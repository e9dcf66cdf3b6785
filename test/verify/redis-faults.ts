import type { Redis } from './deployment.ts';

export interface RedisFault {
  readonly begin: (redis: Redis) => unknown;
  readonly end: (redis: Redis) => unknown;
}

/** What can go wrong with Redis, and how it is repaired. */
export const REDIS_FAULTS = {
  killed: { begin: ({ server }) => server.kill(), end: ({ server }) => server.start() },
  stopped: { begin: ({ server }) => server.freeze(), end: ({ server }) => server.thaw() },
  emptied: { begin: ({ server }) => server.command('FLUSHALL'), end: () => {} },
  slow: slowBy(150),
  // Slower than any call to Redis may be.
  'too-slow': slowBy(700),
  'read-only': commands('REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE'),
  'too-few-replicas': commands('CONFIG SET min-replicas-to-write 3', 'CONFIG SET min-replicas-to-write 0'),
  'out-of-memory': commands('CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0'),
} as const satisfies Record<string, RedisFault>;

export type RedisFaultName = keyof typeof REDIS_FAULTS;

function slowBy(latencyMs: number): RedisFault {
  return { begin: ({ proxy }) => proxy.setFault({ latencyMs }), end: ({ proxy }) => proxy.setFault(undefined) };
}

function commands(begin: string, end: string): RedisFault {
  const send = (command: string) => (redis: Redis) => redis.server.command(...command.split(' '));
  return { begin: send(begin), end: send(end) };
}
