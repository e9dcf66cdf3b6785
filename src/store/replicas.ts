import { z } from 'zod';
import { systemClock } from '../common/clock.ts';
import type { Log } from '../common/log.ts';
import type { NameOf } from './names.ts';
import { createDocumentReader } from './read-document.ts';
import type { ReadDocument } from './read-document.ts';
import type { Store } from './store.ts';
import { MOMENT_MS } from '../common/time-limit.ts';
import { HEARTBEATS_LIVE_MS, HEARTBEAT_MS, REPLICA_STOPPED_MS } from '../common/times.ts';

/** The name ends in the hash of the format, which a test computes: no format changes under a name. */
const HEARTBEATS_NAME = 'replicas:be12d453';
const COUNTED_BEATS = 10;
/** A replica that stopped for a moment may return while Redis is unavailable. */
const REMEMBERED_BEATS = 600;
const MIN_DIVISOR = 2;

/** When each replica had its last heartbeat, by the store's clock. */
export const BEATS = z.record(z.string(), z.number());

interface ReplicasOptions {
  readonly store: Store;
  readonly nameOf: NameOf;
  /** Names this replica. */
  readonly replica: string;
  /** Gets one line when Redis begins to fail, with the reason, and one when it works again. */
  readonly log: Log;
}

/** `connecting`: this process has not reached Redis since its start. */
export type RedisState = 'connected' | 'connecting' | 'unavailable';

/** How many processes share the store, and whether it works. */
export type ReplicaView = Omit<Replicas, 'close' | 'redisState'>;

/** What a process is whose store no other one uses. */
export const ALONE: ReplicaView = {
  count: 1,
  shareDivisor: 1,
  startedAtMs: 0,
  isRedisWorking: true,
  isRedisFast: false,
  onBeat() {},
  noteFailure() {},
};

/** Counts the replicas that share a Redis by their heartbeats, which also show whether Redis works. */
export class Replicas {
  readonly #options: ReplicasOptions;
  readonly #read: ReadDocument<z.infer<typeof BEATS>>;
  readonly #timer: NodeJS.Timeout;
  readonly #listeners: ((hasLostBeats: boolean) => void)[] = [];
  /** How many replicas the last heartbeats found, the last one first. */
  #counts: number[] = [];
  #startedAtMs: number | undefined;
  #isWorking = true;
  /** How long the last successful heartbeat took. */
  #tookMs = 0;
  #isStopping = false;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.#read = createDocumentReader('heartbeats', BEATS, options.store, options.log);
    this.#timer = setInterval(() => void this.#beat(), HEARTBEAT_MS).unref();
    void this.#beat();
  }

  /** The maximum of the last ten heartbeats: a Redis that lost its data counts too few at first. */
  get count(): number {
    return Math.max(1, ...this.#counts.slice(0, COUNTED_BEATS));
  }

  /** Divides the plan while Redis is unavailable. */
  get shareDivisor(): number {
    return Math.max(MIN_DIVISOR, ...this.#counts);
  }

  /** When this replica reached Redis first, by the clock of Redis; undefined before. */
  get startedAtMs(): number | undefined {
    return this.#startedAtMs;
  }

  /** False from the first failure until the next successful heartbeat. */
  get isRedisWorking(): boolean {
    return this.#isWorking;
  }

  get redisState(): RedisState {
    if (this.#startedAtMs === undefined) return 'connecting';
    return this.#isWorking ? 'connected' : 'unavailable';
  }

  /** Whether Redis works, and took at most `MOMENT_MS` for the last heartbeat. */
  get isRedisFast(): boolean {
    return this.#isWorking && this.#tookMs <= MOMENT_MS;
  }

  /**
   * Listens to successful heartbeats.
   *
   * @param listener gets whether Redis has lost this replica's heartbeats: it lost all data, or was unavailable for a minute.
   */
  onBeat(listener: (hasLostBeats: boolean) => void): void {
    this.#listeners.push(listener);
  }

  /** Notes that a command failed. Those that fail because of `close` are not logged. */
  noteFailure({ message }: Error): void {
    if (!this.#isWorking) return;
    this.#isWorking = false;
    if (!this.#isStopping) this.#options.log.warn({ reason: message }, 'Redis is unavailable');
  }

  close(): void {
    this.#isStopping = true;
    clearInterval(this.#timer);
  }

  async #beat(): Promise<void> {
    const sentAtMs = systemClock.elapsed();
    try {
      const { count, hadBeat, nowMs } = await this.#write();
      this.#tookMs = systemClock.elapsed() - sentAtMs;
      this.#startedAtMs ??= nowMs;

      const hasLostBeats = this.#counts.length > 0 && !hadBeat;
      this.#counts = [count, ...this.#counts].slice(0, REMEMBERED_BEATS);
      if (!this.#isWorking && !this.#isStopping) this.#options.log.info({}, 'Redis is available');
      this.#isWorking = true;
      for (const listener of this.#listeners) listener(hasLostBeats);
    } catch (error) {
      this.noteFailure(error as Error);
    }
  }

  /** Adds the heartbeat of this replica to those of the others, and drops those of replicas that have stopped. */
  #write(): Promise<{ count: number; hadBeat: boolean; nowMs: number }> {
    const { store, nameOf, replica } = this.#options;
    // The name without an API key: replicas of one pet API share its plans.
    return store.update(`${HEARTBEATS_NAME}:${nameOf('')}`, (found, nowMs) => {
      const before = this.#read(found) ?? {};
      const isRunning = ([, atMs]: [string, number]) =>
        atMs > nowMs - REPLICA_STOPPED_MS && atMs < nowMs + REPLICA_STOPPED_MS;
      const beats = { ...Object.fromEntries(Object.entries(before).filter(isRunning)), [replica]: nowMs };
      const result = { count: Object.keys(beats).length, hadBeat: replica in before, nowMs };
      return { text: JSON.stringify(beats), ttlMs: HEARTBEATS_LIVE_MS, result };
    });
  }
}
