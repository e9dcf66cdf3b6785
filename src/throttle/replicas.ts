import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { createOwnTime, insist } from './insist.ts';
import type { RedisScript, RedisStore } from '../store/redis.ts';

/** The replicas that share a Redis, counted by their heartbeats; and with that, whether Redis works. */
export interface Replicas {
  /** The most that there were among the last heartbeats: a Redis that was just emptied has not heard of all of them. */
  readonly count: number;
  /**
   * The most that there were in the last ten minutes, since one that is gone for a moment may come back while Redis is away;
   * undefined where Redis was never heard of.
   */
  readonly most: number | undefined;
  /** False from the first failure on, until a heartbeat has come through again. */
  readonly redisWorks: boolean;
  /**
   * For how long it has been back for all replicas that made calls without it, in milliseconds; 0 while it does not work
   * for this one. Infinity where none can be in the midst of a window that it spends alone.
   */
  readonly redisBackForMs: number;
  /** Settles once Redis was heard of, or was not. */
  readonly heard: Promise<void>;
  /** Somebody else found out that Redis does not do what it is asked. */
  redisFailed(): void;
  /** A call was granted alone: where that was without Redis, the others are to know once it is back. */
  wentAlone(): void;
  close(): void;
}

const HEARTBEAT_MS = 1_000;
const LAST_BEATS = 10;
const REMEMBERED_BEATS = 600;
/** A window, with the guards at its ends: what a replica may call alone of it once Redis is back. */
const ALONE_AT_MOST_MS = 65_000;
/** In this time each other replica has told whether it called alone. */
const TOLD_WITHIN_MS = 2 * HEARTBEAT_MS;

const HEARTBEAT: RedisScript = {
  name: 'petqlHeartbeat',
  // It writes, so that a Redis that only reads counts as away. The member without a name says until when some may be calling
  // alone of whom others know nothing.
  source: `
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
redis.call('ZADD', KEYS[1], now, ARGV[1])
local alone = tonumber(redis.call('ZSCORE', KEYS[1], '') or 0)
if tonumber(ARGV[2]) > 0 then
  alone = math.max(alone, now + tonumber(ARGV[2]) / 1000)
  redis.call('ZADD', KEYS[1], alone, '')
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 10)
redis.call('EXPIRE', KEYS[1], 120)
local others = redis.call('ZSCORE', KEYS[1], '') and 1 or 0
return (redis.call('ZCARD', KEYS[1]) - others) .. ' ' .. math.max(0, math.ceil((alone - now) * 1000))
`,
};

export function createReplicas(
  redis: RedisStore,
  replica: string,
  { elapsed }: Pick<Clock, 'elapsed'> = systemClock,
): Replicas {
  let counts: number[] = [];
  let works = true;
  let worksSinceMs = -Infinity;
  /** Until then some replica may be calling alone. */
  let aloneUntilMs = -Infinity;
  let calledAlone = false;
  const ownTime = createOwnTime();
  const timer = setInterval(() => void beat(), HEARTBEAT_MS).unref();
  const heard = beat();
  return {
    heard,
    get count() {
      return Math.max(1, ...counts.slice(0, LAST_BEATS));
    },
    get most() {
      return counts.length === 0 ? undefined : Math.max(...counts);
    },
    get redisWorks() {
      return works;
    },
    get redisBackForMs() {
      if (!works) return 0;
      const ownMs = elapsed() - worksSinceMs;
      const othersMs = ALONE_AT_MOST_MS - (aloneUntilMs - elapsed());
      return Math.min(ownMs < TOLD_WITHIN_MS ? ownMs : Infinity, othersMs < ALONE_AT_MOST_MS ? othersMs : Infinity);
    },
    redisFailed() {
      works = false;
    },
    wentAlone() {
      calledAlone ||= !works || elapsed() - worksSinceMs < TOLD_WITHIN_MS;
    },
    close() {
      clearInterval(timer);
      ownTime.close();
    },
  };

  async function beat(): Promise<void> {
    const tellsOfCalls = calledAlone;
    try {
      // The first connection may take longer than an answer.
      const answer = await (counts.length === 0 ? tell() : insist(tell, { ownTime, onFailure: noteLost }));
      const [counted, othersAloneForMs] = answer.split(' ').map(Number) as [number, number];
      counts = [counted, ...counts].slice(0, REMEMBERED_BEATS);
      if (!works) worksSinceMs = elapsed();
      aloneUntilMs = Math.max(aloneUntilMs, elapsed() + othersAloneForMs);
      works = true;
      if (tellsOfCalls) calledAlone = false;
    } catch {
      works = false;
    }
  }

  function tell(): Promise<string> {
    return redis.run(HEARTBEAT, 'petql:replicas', replica, String(calledAlone ? ALONE_AT_MOST_MS : 0));
  }

  /** Without a connection there is nothing to wait for; what took too long may be this process's own doing. */
  function noteLost(): void {
    if (!redis.connected) works = false;
  }
}
