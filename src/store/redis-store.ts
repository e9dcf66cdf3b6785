import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Events, StoreUpdateEvent } from '../common/events.ts';
import { bytesFor } from '../common/memory.ts';
import { pause } from '../common/time-limit.ts';
import { RedisClock } from './redis-clock.ts';
import type { RedisConnection } from './redis.ts';
import type { Change, Changed, SharedStore, Urgency } from './store.ts';
import { GATHER_MS, LATE_MS, MAX_COMPARE_PAUSE_MS, MAX_GATHER_MS, REDIS_CLOCK_EVERY_MS } from '../common/times.ts';

/** A retry waits for a random moment once it has lost more compares than this. */
const LOSSES_BEFORE_PAUSE = 3;
const KEY_PREFIX = 'petql:';

/** A stored text begins with its version: a UUID that is new with each write. */
const VERSION_LENGTH = 36;
/** No document has this version, so a compare with it loses and returns the text. */
const NO_VERSION = '-'.repeat(VERSION_LENGTH);
/** A compare with it always wins. */
const ANY_VERSION = '*';

/** The nodes of a Cluster have different clocks: all replicas go by the clock of the node that would have this document. */
const CLOCK_NAME = 'clock';

type Action = Parameters<RedisConnection['compareAndSet']>[2];

/** A change that waits for its write. */
interface Update {
  readonly change: Change<unknown>;
  readonly urgency: Urgency;
  /** By the monotonic clock: when it is written at the earliest, where no other one is. */
  readonly dueAtMs: number;
  resolve(result: unknown): void;
  readonly reject: (error: unknown) => void;
}

/** The updates of one document, in order. */
interface Queue {
  readonly updates: Update[];
  isWriting: boolean;
  /** By the monotonic clock: where others write too, updates are gathered until then. */
  gathersUntilMs: number;
  /** Begins the next write. */
  timer?: NodeJS.Timeout | undefined;
}

/** What the changes of several updates make of a document. */
interface Applied {
  /** The text with its version; '' for no document. */
  readonly stored: string;
  /** Undefined where the changes only read. */
  readonly ttlMs: number | undefined;
  /** Ends the updates, once the text is written. */
  readonly settle: () => void;
}

/**
 * Keeps documents in Redis, for all replicas. An update is a compare-and-set against the text that this process saw last: one
 * round trip when no other replica wrote meanwhile. Updates that arrive while one is under way are written together.
 */
export class RedisStore implements SharedStore {
  readonly #redis: RedisConnection;
  readonly #elapsedMs: () => number;
  readonly #events: Events | undefined;
  readonly #clock: RedisClock;
  /** Updates under way by name. */
  readonly #queues = new Map<string, Queue>();
  /** Stored texts as last seen, '' for none. */
  readonly #lastSeen = new LRUCache<string, string>({
    maxSize: bytesFor('redisTexts'),
    // A byte for each character, since most are Latin-1.
    sizeCalculation: (stored, name) => stored.length + name.length,
  });
  /** When the clock of a Cluster was read last. */
  #clockReadAtMs = -Infinity;

  /**
   * @param elapsedMs a monotonic clock, in milliseconds.
   * @param events gets the duration of each command.
   */
  constructor(redis: RedisConnection, elapsedMs: () => number, events: Events | undefined) {
    this.#redis = redis;
    this.#elapsedMs = elapsedMs;
    this.#events = events;
    this.#clock = new RedisClock(elapsedMs);
  }

  update<Result>(name: string, change: Change<Result>, urgency: Urgency = 'soon'): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const queue = this.#queues.get(name) ?? { updates: [], isWriting: false, gathersUntilMs: 0 };
      this.#queues.set(name, queue);
      const dueAtMs = this.#elapsedMs() + (urgency === 'late' ? LATE_MS : 0);
      queue.updates.push({ change, urgency, dueAtMs, resolve, reject });
      this.#schedule(name, queue);
    });
  }

  async read(name: string): Promise<string | undefined> {
    const { found } = await this.#send(name, NO_VERSION, 'keep');
    return textOf(found);
  }

  async write(name: string, text: string, ttlMs: number): Promise<void> {
    await this.#send(name, ANY_VERSION, 'set', storedOf(text), String(Math.ceil(ttlMs)));
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  async close(): Promise<void> {
    this.#redis.close();
  }

  #schedule(name: string, queue: Queue): void {
    if (queue.isWriting) return;
    clearTimeout(queue.timer);
    const waitMs = nextWriteAtMs(queue) - this.#elapsedMs();
    if (waitMs > 0) {
      queue.timer = setTimeout(() => void this.#writeQueue(name, queue), Math.ceil(waitMs));
      return;
    }

    queue.isWriting = true;
    // After the other updates of this event-loop turn, so they are written together.
    queueMicrotask(() => void this.#writeQueue(name, queue));
  }

  /** Writes all updates, and those that come meanwhile with the next try. */
  async #writeQueue(name: string, queue: Queue): Promise<void> {
    queue.isWriting = true;
    let losses = 0;
    for (let isDone = queue.updates.length === 0; !isDone;) {
      const batch = [...queue.updates];
      try {
        isDone = await this.#tryWrite(name, batch);
        if (isDone) queue.updates.splice(0, batch.length);
        else losses += 1;
        if (losses > LOSSES_BEFORE_PAUSE && !isDone) await pause(Math.random() * MAX_COMPARE_PAUSE_MS);
      } catch (error) {
        isDone = true;
        for (const { reject } of queue.updates.splice(0, batch.length)) reject(error);
      }
    }

    queue.isWriting = false;
    queue.gathersUntilMs = this.#elapsedMs() + Math.min(losses * GATHER_MS, MAX_GATHER_MS);
    if (queue.updates.length > 0 || losses > 0) this.#schedule(name, queue);
    else this.#queues.delete(name);
  }

  /** Returns false where another replica wrote first, and the batch has changes for its text. */
  async #tryWrite(name: string, batch: readonly Update[]): Promise<boolean> {
    const found = await this.#writeOverLastSeen(name, batch);
    if (found === undefined) return true;

    // The reply has text and time, so a batch that only reads needs no second command.
    const { ttlMs, settle } = applyAll(batch, found, this.nowMs());
    const isReadOnly = ttlMs === undefined;
    if (isReadOnly) settle();
    return isReadOnly;
  }

  /** Returns undefined where the batch is written, else the stored text. */
  async #writeOverLastSeen(name: string, batch: readonly Update[]): Promise<string | undefined> {
    // Changes need Redis's time, which only a reply has.
    if (!this.#clock.isSet && this.#redis.hasManyClocks) await this.#readClock();
    if (!this.#clock.isSet) return this.#compareAndSet(name, NO_VERSION, '');

    const seen = this.#lastSeen.get(name) ?? '';
    const { stored, ttlMs, settle } = applyAll(batch, seen, this.nowMs());
    const found = await this.#compareAndSet(name, versionOf(seen), stored, ttlMs);
    if (found === undefined) settle();
    return found;
  }

  /**
   * Returns the stored text after a lost compare, undefined after one that is won.
   *
   * @param stored the text with its version; '' deletes the document.
   * @param ttlMs undefined leaves the document unchanged.
   */
  async #compareAndSet(name: string, version: string, stored: string, ttlMs?: number): Promise<string | undefined> {
    const action = ttlMs === undefined ? 'keep' : stored === '' ? 'delete' : 'set';
    const args = action === 'set' ? [stored, String(Math.ceil(ttlMs ?? 0))] : [];
    const { isWon, found } = await this.#send(name, version, action, ...args);
    this.#lastSeen.set(name, isWon ? stored : found);
    return isWon ? undefined : found;
  }

  async #send(
    name: string,
    version: string,
    action: Action,
    ...textAndTtl: string[]
  ): Promise<{ isWon: boolean; found: string }> {
    const sentAtMs = this.#elapsedMs();
    let result: StoreUpdateEvent['result'] = 'failed';
    try {
      const reply = await this.#redis.compareAndSet(`${KEY_PREFIX}${name}`, version, action, ...textAndTtl);
      const [, outcome, redisMs, found = ''] = /^(\w+) (\d+) ([^]*)$/.exec(reply) ?? [];
      const isWon = outcome === 'won';
      result = action === 'keep' ? 'read' : isWon ? 'won' : 'lost';

      this.#setClock(name, Number(redisMs), sentAtMs);
      return { isWon, found };
    } finally {
      this.#events?.storeUpdate({ result, tookMs: this.#elapsedMs() - sentAtMs });
    }
  }

  /** Reads the time of a reply. */
  #setClock(name: string, redisMs: number, sentAtMs: number): void {
    const isClock = !this.#redis.hasManyClocks || name === CLOCK_NAME;
    if (isClock) this.#clock.adjust(redisMs, sentAtMs);
    else if (sentAtMs - this.#clockReadAtMs > REDIS_CLOCK_EVERY_MS) void this.#readClock().catch(() => {});
  }

  async #readClock(): Promise<void> {
    this.#clockReadAtMs = this.#elapsedMs();
    await this.#send(CLOCK_NAME, NO_VERSION, 'keep');
  }
}

function nextWriteAtMs({ updates, gathersUntilMs }: Queue): number {
  if (updates.some(({ urgency }) => urgency === 'now')) return 0;
  const dueAtMs = updates.length > 0 ? Math.min(...updates.map((update) => update.dueAtMs)) : 0;
  return Math.max(gathersUntilMs, dueAtMs);
}

function storedOf(text: string): string {
  return `${randomUUID()}${text}`;
}

function textOf(stored: string): string | undefined {
  return stored === '' ? undefined : stored.slice(VERSION_LENGTH);
}

function versionOf(stored: string): string {
  return stored.slice(0, VERSION_LENGTH);
}

/** Applies the changes in order to a stored text. */
function applyAll(batch: readonly Update[], seen: string, nowMs: number): Applied {
  const before = textOf(seen);
  let now: Pick<Changed<unknown>, 'text' | 'ttlMs'> = { text: before, ttlMs: 0 };
  const ends: (() => void)[] = [];
  for (const update of batch) {
    try {
      const changed = update.change(now.text, nowMs);
      if (changed.text !== now.text) now = changed;
      ends.push(() => update.resolve(changed.result));
    } catch (error) {
      ends.push(() => update.reject(error));
    }
  }

  const settle = () => ends.forEach((end) => end());
  if (now.text === before) return { stored: seen, ttlMs: undefined, settle };
  return { stored: now.text === undefined ? '' : storedOf(now.text), ttlMs: now.ttlMs, settle };
}
