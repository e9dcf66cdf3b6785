import { silentLog } from '../log.ts';
import type { Log } from '../log.ts';
import type { RedisScript, RedisStore } from '../store/redis.ts';
import { createOwnTime, insist } from './insist.ts';

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
   * The last time that Redis was away, that another took its place between two heartbeats, or that it lost what it held, each
   * another object; undefined where none of that ever was.
   */
  readonly outage: Outage | undefined;
  /** Somebody else found out that Redis does not do what it is asked, and why. */
  redisFailed(why: Error): void;
  close(): void;
}

export interface Outage {
  /** How many milliseconds ago it was found out. */
  agoMs(): number;
}

const HEARTBEAT_MS = 1_000;
const LAST_BEATS = 10;
const REMEMBERED_BEATS = 600;
/** In Redis a replica is gone after this, by its clock. */
const GONE_S = 10;
/** By so much Redis's clock may seem ahead of ours between two heartbeats, which count its whole seconds and take a moment each. */
const CLOCK_AHEAD_MS = 3_000;
/** A Redis that takes heartbeats and nothing else would be back, and away, once a second in the log. */
const STEADY_BEATS = 3;

const HEARTBEAT: RedisScript = {
  name: 'petqlHeartbeat',
  // It writes and publishes, so that a Redis that only reads, or lets this user tell the others nothing, counts as away.
  source: `
redis.call('PUBLISH', 'petql:replicas', ARGV[1])
local now = tonumber(redis.call('TIME')[1])
local last = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ${GONE_S})
redis.call('EXPIRE', KEYS[1], 60)
return redis.call('ZCARD', KEYS[1]) .. ' ' .. (last and now - last or '')
`,
};

/**
 * @param log hears once when Redis begins to fail, with the reason, and once when it has worked for three heartbeats again.
 *   Default: nobody.
 */
export function createReplicas(redis: RedisStore, replica: string, log: Log = silentLog): Replicas {
  let counts: number[] = [];
  let works = true;
  /** The heartbeats since the last failure, where that was told and its end was not. */
  let beatsSinceTold: number | undefined;
  let closed = false;
  let outage: Outage | undefined;
  let last: { readonly sentAtMs: number; readonly connection: number | undefined } | undefined;
  const ownTime = createOwnTime();
  const timer = setInterval(beat, HEARTBEAT_MS).unref();
  beat();
  return {
    get count() {
      return Math.max(1, ...counts.slice(0, LAST_BEATS));
    },
    get most() {
      return counts.length === 0 ? undefined : Math.max(...counts);
    },
    get redisWorks() {
      return works;
    },
    get outage() {
      const { replaced } = redis;
      if (!replaced || !outage) return replaced ?? outage;
      return replaced.agoMs() <= outage.agoMs() ? replaced : outage;
    },
    redisFailed: noteAway,
    close() {
      closed = true;
      clearInterval(timer);
      ownTime.close();
    },
  };

  function beat(): void {
    const sentAtMs = performance.now();
    // The first connection may take longer than an answer.
    (counts.length === 0 ? tell() : insist(tell, { ownTime, onFailure: noteLost })).then((answer) => {
      const [counted, lastAgoS] = answer.split(' ');
      noteEmptied(lastAgoS, sentAtMs);
      counts = [Number(counted), ...counts].slice(0, REMEMBERED_BEATS);
      noteBack();
    }, noteAway);
  }

  /**
   * Redis does not know the last heartbeat any more, or takes it for longer ago than it is: somebody has emptied it, or set its
   * clock, and pauses that it held are lost, or over too soon. What comes of a new connection is noticed elsewhere.
   *
   * @param lastAgoS how many seconds ago it was by Redis's clock; empty where it is not known.
   */
  function noteEmptied(lastAgoS: string | undefined, sentAtMs: number): void {
    const before = last;
    last = { sentAtMs, connection: redis.connections };
    if (!before || !works || before.connection !== last.connection) return;
    const agoMs = sentAtMs - before.sentAtMs;
    const isLost = lastAgoS === '' && agoMs < (GONE_S * 1_000) / 2;
    if (!isLost && !(Number(lastAgoS) * 1_000 > agoMs + CLOCK_AHEAD_MS)) return;
    outage = { agoMs: () => performance.now() - before.sentAtMs };
    log.warn({}, 'Redis was emptied, or its clock set ahead; it is told again what is known here');
  }

  /** What was under way when it was closed fails, and says nothing of Redis. */
  function noteAway({ message }: Error): void {
    if (beatsSinceTold === undefined && !closed) log.warn({ reason: message }, 'Redis is away');
    beatsSinceTold = 0;
    const sinceMs = performance.now();
    if (works) outage = { agoMs: () => performance.now() - sinceMs };
    works = false;
  }

  function noteBack(): void {
    works = true;
    if (beatsSinceTold === undefined) return;
    beatsSinceTold += 1;
    if (beatsSinceTold < STEADY_BEATS || closed) return;
    beatsSinceTold = undefined;
    log.info({}, 'Redis is back');
  }

  function tell(): Promise<string> {
    return redis.run(HEARTBEAT, 'petql:replicas', replica);
  }

  /** Without a connection there is nothing to wait for; what took too long may be this process's own doing. */
  function noteLost(why: Error): void {
    if (!redis.connected) noteAway(why);
  }
}
