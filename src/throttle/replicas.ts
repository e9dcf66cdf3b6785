import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import type { RedisScript, RedisStore } from '../store/redis.ts';

/** The replicas that share a Redis, counted by their heartbeats; and with that, whether Redis works. */
export interface Replicas {
  /** The most that there were among the last heartbeats: a Redis that was just emptied has not heard of all of them. */
  readonly count: number;
  /** False from the first failure on, until a heartbeat has come through again. */
  readonly redisWorks: boolean;
  /** For how long it has worked without a failure, in milliseconds; 0 while it does not. */
  readonly redisWorksForMs: number;
  /** Somebody else found out that Redis does not do what it is asked. */
  redisFailed(): void;
  close(): void;
}

const HEARTBEAT_MS = 1_000;
const REMEMBERED_BEATS = 10;

const HEARTBEAT: RedisScript = {
  name: 'petqlHeartbeat',
  // It writes, so that a Redis that only reads counts as away.
  source: `
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 10)
redis.call('EXPIRE', KEYS[1], 60)
return tostring(redis.call('ZCARD', KEYS[1]))
`,
};

export function createReplicas(
  redis: RedisStore,
  replica: string,
  { elapsed }: Pick<Clock, 'elapsed'> = systemClock,
): Replicas {
  let counts: number[] = [];
  let works = true;
  let worksSinceMs = elapsed();
  const timer = setInterval(beat, HEARTBEAT_MS).unref();
  beat();
  return {
    get count() {
      return Math.max(1, ...counts);
    },
    get redisWorks() {
      return works;
    },
    get redisWorksForMs() {
      return works ? elapsed() - worksSinceMs : 0;
    },
    redisFailed() {
      works = false;
    },
    close: () => clearInterval(timer),
  };

  function beat(): void {
    redis.run(HEARTBEAT, 'petql:replicas', replica).then(
      (counted) => {
        counts = [Number(counted), ...counts].slice(0, REMEMBERED_BEATS);
        if (!works) worksSinceMs = elapsed();
        works = true;
      },
      () => {
        works = false;
      },
    );
  }
}
