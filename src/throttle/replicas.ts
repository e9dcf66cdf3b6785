import { silentLog } from '../log.ts';
import type { Log } from '../log.ts';
import type { RedisConnection, RedisScript } from '../store/redis.ts';

/** The replicas that share a Redis, counted by their heartbeats; and with that, whether Redis works. */
export interface Replicas {
  /** The maximum of the last ten heartbeats: a Redis that lost its data counts too few at first. */
  readonly count: number;
  /** Divides the plan while Redis is unavailable; undefined while other replicas may not have counted this one. */
  readonly shareCount: number | undefined;
  /** False from the first failure until the next successful heartbeat. */
  readonly isRedisWorking: boolean;
  /** Notes that a command failed. */
  noteFailure(why: Error): void;
  /**
   * Listens to successful heartbeats.
   *
   * @param listener gets whether Redis has lost this replica's heartbeats: it lost its data, or was unavailable for some time.
   */
  onBeat(listener: (isEmptied: boolean) => void): void;
  close(): void;
}

const HEARTBEAT_MS = 1_000;
const COUNTED_BEATS = 10;
/** A replica that stopped for a moment may return while Redis is unavailable. */
const REMEMBERED_BEATS = 600;
/** A replica without a heartbeat for so long has stopped. */
const GONE_S = 10;
/** Successful heartbeats before the log says so: a Redis that fails often has one line. */
const STEADY_BEATS = 3;
/**
 * Replicas whose heartbeats succeeded for so long have counted each other: longer than a heartbeat, and shorter than GONE_S.
 */
const SETTLED_MS = 5_000;
const MIN_SHARE = 2;

const HEARTBEAT: RedisScript = {
  name: 'petqlHeartbeat',
  // It writes and publishes, so it fails where Redis is read-only, or this user may not publish.
  source: `
redis.call('PUBLISH', 'petql:replicas', ARGV[1])
local now = tonumber(redis.call('TIME')[1])
local isKnown = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ${GONE_S})
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + 1, '+inf')
redis.call('EXPIRE', KEYS[1], 60)
return redis.call('ZCARD', KEYS[1]) .. (isKnown and ' known' or '')
`,
};

/** @param log gets one line when Redis begins to fail, with the reason, and one when it works steadily. Default: none. */
export function createReplicas(redis: RedisConnection, replica: string, log: Log = silentLog): Replicas {
  let counts: number[] = [];
  let isWorking = true;
  /** Heartbeats since the last failure, where its end is not in the log yet. */
  let beatsSinceFailure: number | undefined;
  /** By the process's clock: the first successful heartbeat, the start of the last one, and the first failure after it. */
  let firstBeatMs = Infinity;
  let lastBeatMs = -Infinity;
  let failedAtMs = 0;
  let isClosed = false;
  const listeners: ((isEmptied: boolean) => void)[] = [];
  const timer = setInterval(beat, HEARTBEAT_MS).unref();
  beat();
  return {
    get count() {
      return Math.max(1, ...counts.slice(0, COUNTED_BEATS));
    },
    get shareCount() {
      const isSettled = lastBeatMs - firstBeatMs >= SETTLED_MS && failedAtMs - lastBeatMs <= SETTLED_MS;
      return isSettled ? Math.max(MIN_SHARE, ...counts) : undefined;
    },
    get isRedisWorking() {
      return isWorking;
    },
    noteFailure,
    onBeat: (listener) => void listeners.push(listener),
    close() {
      isClosed = true;
      clearInterval(timer);
    },
  };

  function beat(): void {
    const sentAtMs = performance.now();
    redis.run(HEARTBEAT, 'petql:replicas', replica).then(
      (reply) => {
        firstBeatMs = Math.min(firstBeatMs, performance.now());
        lastBeatMs = sentAtMs;
        const isEmptied = counts.length > 0 && !reply.endsWith('known');
        counts = [Number.parseInt(reply, 10), ...counts].slice(0, REMEMBERED_BEATS);
        noteSuccess();
        for (const listener of listeners) listener(isEmptied);
      },
      (error: Error) => noteFailure(error),
    );
  }

  /** Commands that fail because of `close` are not logged. */
  function noteFailure({ message }: Error): void {
    if (beatsSinceFailure === undefined && !isClosed) log.warn({ reason: message }, 'Redis is unavailable');
    beatsSinceFailure = 0;
    if (isWorking) failedAtMs = performance.now();
    isWorking = false;
  }

  function noteSuccess(): void {
    isWorking = true;
    if (beatsSinceFailure === undefined) return;
    beatsSinceFailure += 1;
    if (beatsSinceFailure < STEADY_BEATS || isClosed) return;
    beatsSinceFailure = undefined;
    log.info({}, 'Redis is available');
  }
}
