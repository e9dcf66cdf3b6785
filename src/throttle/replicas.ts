import type { Log } from '../log.ts';
import type { NameOf } from '../store/names.ts';
import { StoreUnavailableError } from '../store/store.ts';
import type { Store } from '../store/store.ts';
import { MOMENT_MS } from '../time-limit.ts';

/** The version in a document's name is raised with its format. */
const NAME = 'replicas:2';
const HEARTBEAT_MS = 1_000;
const COUNTED_BEATS = 10;
/** A replica that stopped for a moment may return while Redis is unavailable. */
const REMEMBERED_BEATS = 600;
/** A replica without a heartbeat for so long has stopped. */
const GONE_MS = 10_000;
const KEPT_MS = 60_000;
/**
 * Replicas whose heartbeats succeeded for so long have counted each other: longer than a heartbeat, and shorter than GONE_MS.
 */
const SETTLED_MS = 5_000;
const MIN_DIVISOR = 2;

/** When each replica had its last heartbeat, by the store's clock. */
type Beats = Readonly<Record<string, number>>;

export type Replicas = ReturnType<typeof createReplicas>;

/**
 * The replicas that share a Redis, counted by their heartbeats; and with that, whether Redis works.
 *
 * @param log gets one line when Redis begins to fail, with the reason, and one when it works again.
 */
export function createReplicas(store: Store, nameOf: NameOf, replica: string, log: Log) {
  // The name without an API key: replicas of one pet API share its plans.
  const name = `${NAME}:${nameOf('')}`;
  let counts: number[] = [];
  let isWorking = true;
  /** By the process's clock: the first successful heartbeat, the start of the last one, and the first failure after it. */
  let firstBeatMs = Infinity;
  let lastBeatMs = -Infinity;
  let failedAtMs = 0;
  /** How long the last successful heartbeat took. */
  let tookMs = 0;
  let isClosed = false;
  const listeners: ((isEmptied: boolean) => void)[] = [];
  const timer = setInterval(() => void beat(), HEARTBEAT_MS).unref();
  void beat();
  return {
    /** The maximum of the last ten heartbeats: a Redis that lost its data counts too few at first. */
    get count() {
      return Math.max(1, ...counts.slice(0, COUNTED_BEATS));
    },
    /** Divides the plan while Redis is unavailable; undefined while other replicas may not have counted this one. */
    get shareDivisor() {
      const isSettled = lastBeatMs - firstBeatMs >= SETTLED_MS && failedAtMs - lastBeatMs <= SETTLED_MS;
      return isSettled ? Math.max(MIN_DIVISOR, ...counts) : undefined;
    },
    /** False from the first failure until the next successful heartbeat. */
    get isRedisWorking() {
      return isWorking;
    },
    /** Whether a look at Redis takes but a moment. */
    get isRedisFast() {
      return isWorking && tookMs <= MOMENT_MS;
    },
    noteFailure,
    /**
     * Listens to successful heartbeats.
     *
     * @param listener gets whether Redis has lost this replica's heartbeats: it lost its data, or was unavailable for some time.
     */
    onBeat: (listener: (isEmptied: boolean) => void) => void listeners.push(listener),
    close() {
      isClosed = true;
      clearInterval(timer);
    },
  };

  async function beat(): Promise<void> {
    const sentAtMs = performance.now();
    try {
      const { count, isKnown } = await store.update(name, (found, nowMs) => {
        const before = found === undefined ? {} : (JSON.parse(found) as Beats);
        const isThere = ([, atMs]: [string, number]) => atMs > nowMs - GONE_MS && atMs < nowMs + GONE_MS;
        const beats = { ...Object.fromEntries(Object.entries(before).filter(isThere)), [replica]: nowMs };
        const result = { count: Object.keys(beats).length, isKnown: replica in before };
        return { text: JSON.stringify(beats), ttlMs: KEPT_MS, result };
      });
      firstBeatMs = Math.min(firstBeatMs, performance.now());
      lastBeatMs = sentAtMs;
      tookMs = performance.now() - sentAtMs;
      const isEmptied = counts.length > 0 && !isKnown;
      counts = [count, ...counts].slice(0, REMEMBERED_BEATS);
      if (!isWorking && !isClosed) log.info({}, 'Redis is available');
      isWorking = true;
      for (const listener of listeners) listener(isEmptied);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError && error.isContended)) noteFailure(error as Error);
    }
  }

  /** Notes that a command failed. Those that fail because of `close` are not logged. */
  function noteFailure({ message }: Error): void {
    if (!isWorking) return;
    isWorking = false;
    failedAtMs = performance.now();
    if (!isClosed) log.warn({ reason: message }, 'Redis is unavailable');
  }
}
