import type { Events, StoreUpdateEvent } from '../events.ts';
import type { RedisConnection } from './redis.ts';

/** Reports the duration of each command, and whether its compare won. */
export function timedConnection(connection: RedisConnection, onUpdate: Events['storeUpdate']): RedisConnection {
  return {
    async compareAndSet(key, version, action, ...textAndTtl) {
      const startedMs = performance.now();
      let result: StoreUpdateEvent['result'] = 'failed';
      try {
        const reply = await connection.compareAndSet(key, version, action, ...textAndTtl);
        result = action === 'keep' ? 'read' : reply.startsWith('won') ? 'won' : 'lost';
        return reply;
      } finally {
        onUpdate({ result, tookMs: performance.now() - startedMs });
      }
    },

    close: () => connection.close(),
    hasManyClocks: connection.hasManyClocks,
  };
}
