import type { Replicas } from '../../src/throttle/replicas.ts';

/** Two replicas whose Redis works until somebody says otherwise. */
export function twoReplicas(): Replicas & { redisWorks: boolean } {
  const replicas = {
    count: 2,
    most: 2,
    redisWorks: true,
    outage: undefined,
    redisFailed() {
      replicas.redisWorks = false;
    },
    close() {},
  };
  return replicas;
}
