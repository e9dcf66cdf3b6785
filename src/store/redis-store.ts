import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { pause } from '../time-limit.ts';
import type { RedisConnection } from './redis.ts';
import type { Change, Changed, SharedStore } from './store.ts';

/** From so many lost compares on, a retry waits for a random moment. */
const LOSSES_BEFORE_PAUSE = 3;
const MAX_PAUSE_MS = 10;
const MAX_CACHED_CHARACTERS = 20_000_000;
const KEY_PREFIX = 'petql:';
/** A stored text begins with the version that its write gave it, a UUID. No document has this version, so a compare with it loses and returns the text. */
const NO_VERSION = '-'.repeat(36);
const ANY_VERSION = '*';

type Action = Parameters<RedisConnection['compareAndSet']>[2];

/** The nodes of a Cluster have clocks of their own: all replicas go by the one of the node on which this document would be. */
const CLOCK_NAME = 'clock';
const CLOCK_EVERY_MS = 500;

interface Update {
  readonly change: Change<unknown>;
  resolve(result: unknown): void;
  readonly reject: (error: unknown) => void;
}

/**
 * Keeps documents in Redis, for all replicas. An update is a compare-and-set against the text that this process saw last: one
 * round trip when no other replica wrote meanwhile. Updates that arrive while one is under way are written together.
 *
 * @param elapsedMs a monotonic clock, in milliseconds.
 */
export function createRedisStore(redis: RedisConnection, elapsedMs: () => number): SharedStore {
  /** Updates under way by name, in order. */
  const queues = new Map<string, Update[]>();
  /** Stored texts as last seen, '' for none. */
  const lastSeen = new LRUCache<string, string>({
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: (stored, name) => stored.length + name.length,
  });
  /** Redis's clock minus the local one; undefined before the first reply. */
  let offsetMs: number | undefined;
  /** When the clock of a Cluster was read last. */
  let clockReadAtMs = -Infinity;

  return {
    update,
    async read(name) {
      const { found } = await send(name, NO_VERSION, 'keep');
      return found === '' ? undefined : found.slice(NO_VERSION.length);
    },
    async write(name, text, ttlMs) {
      await send(name, ANY_VERSION, 'set', versioned(text), String(Math.ceil(ttlMs)));
    },
    nowMs,
    async close() {
      redis.close();
    },
  };

  function update<Result>(name: string, change: Change<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      const called = { change, resolve, reject };
      const queue = queues.get(name);
      if (queue) queue.push(called);
      else {
        queues.set(name, [called]);
        // After the other updates of this event-loop turn, so they are written together.
        queueMicrotask(() => void writeQueue(name));
      }
    });
  }

  function nowMs(): number {
    return Math.floor(offsetMs === undefined ? Date.now() : elapsedMs() + offsetMs);
  }

  async function writeQueue(name: string): Promise<void> {
    const queue = queues.get(name) ?? [];
    for (let losses = 0; queue.length > 0;) {
      const batch = [...queue];
      try {
        if (await tryWrite(name, batch)) {
          queue.splice(0, batch.length);
          losses = 0;
        } else {
          losses += 1;
          if (losses > LOSSES_BEFORE_PAUSE) await pause(Math.random() * MAX_PAUSE_MS);
        }
      } catch (error) {
        for (const { reject } of queue.splice(0, batch.length)) reject(error);
      }
    }
    queues.delete(name);
  }

  /** Returns false where another replica wrote first, and the batch has changes for its text. */
  async function tryWrite(name: string, batch: readonly Update[]): Promise<boolean> {
    let found: string | undefined;
    if (offsetMs === undefined && redis.hasManyClocks) await readClock();
    if (offsetMs === undefined) {
      // Changes need Redis's time, which only a reply has.
      found = await compareAndSet(name, NO_VERSION, '');
    } else {
      const seen = lastSeen.get(name) ?? '';
      const { stored, ttlMs, settle } = applyAll(batch, seen, nowMs());
      found = await compareAndSet(name, seen.slice(0, NO_VERSION.length), stored, ttlMs);
      if (found === undefined) settle();
    }
    if (found === undefined) return true;

    // The reply has text and time, so a batch that only reads needs no second command.
    const { ttlMs, settle } = applyAll(batch, found, nowMs());
    if (ttlMs === undefined) settle();
    return ttlMs === undefined;
  }

  /**
   * Returns the stored text after a lost compare, undefined after one that is won.
   *
   * @param stored what Redis holds afterwards; '' for nothing. Without a time to live it stays as it is.
   */
  async function compareAndSet(
    name: string,
    version: string,
    stored: string,
    ttlMs?: number,
  ): Promise<string | undefined> {
    const action = ttlMs === undefined ? 'keep' : stored === '' ? 'delete' : 'set';
    const args = action === 'set' ? [stored, String(Math.ceil(ttlMs ?? 0))] : [];
    const { isWon, found } = await send(name, version, action, ...args);
    lastSeen.set(name, isWon ? stored : found);
    return isWon ? undefined : found;
  }

  async function send(name: string, version: string, action: Action, ...textAndTtl: string[]) {
    const sentAtMs = elapsedMs();
    const reply = await redis.compareAndSet(`${KEY_PREFIX}${name}`, version, action, ...textAndTtl);
    const [, outcome, redisMs, found = ''] = /^(\w+) (\d+) ([^]*)$/.exec(reply) ?? [];
    if (!redis.hasManyClocks || name === CLOCK_NAME) learnTime(Number(redisMs), sentAtMs);
    else if (sentAtMs - clockReadAtMs > CLOCK_EVERY_MS) void readClock().catch(() => {});
    return { isWon: outcome === 'won', found };
  }

  async function readClock(): Promise<void> {
    clockReadAtMs = elapsedMs();
    await send(CLOCK_NAME, NO_VERSION, 'keep');
  }

  /** Keeps the offset within the bounds of each reply: Redis read its clock between `sentAtMs` and now. */
  function learnTime(redisMs: number, sentAtMs: number): void {
    const [minMs, maxMs] = [redisMs - elapsedMs(), redisMs + 1 - sentAtMs];
    offsetMs = Math.min(Math.max(offsetMs ?? minMs, minMs), maxMs);
  }
}

function versioned(text: string): string {
  return `${randomUUID()}${text}`;
}

/** Applies the changes in order to a stored text. Returns what to store, and without a change no time to live. */
function applyAll(batch: readonly Update[], seen: string, nowMs: number) {
  const before = seen === '' ? undefined : seen.slice(NO_VERSION.length);
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
  return { stored: now.text === undefined ? '' : versioned(now.text), ttlMs: now.ttlMs, settle };
}
