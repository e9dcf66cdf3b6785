import { pause } from '../pause.ts';
import { RedisAway } from '../store/redis.ts';

/**
 * An attempt that fails sooner is made again, and one that took long once: a moment's stall must not send one replica on
 * alone beside others that go on together. No call waits a second because of Redis.
 */
const PATIENCE_MS = 400;
const FEWEST_TRIES = 2;
const LONGEST_MS = 850;
const BETWEEN_TRIES_MS = 50;
const TICK_MS = 50;
/** What a tick counts for at most: it is often a little late, and a call that waits for Redis waits for that too. */
const LONGEST_TICK_MS = 150;

/**
 * Milliseconds in which this process ran. While it is stopped or starved of its processor, time passes that says nothing
 * of Redis: the answer may be there, unread.
 */
export interface OwnTime {
  elapsed(): number;
  /** Whether it stands still for good, so that nothing is waited for any more. */
  readonly closed: boolean;
  close(): void;
}

export function createOwnTime(): OwnTime {
  let countedMs = 0;
  let lastMs = performance.now();
  let closed = false;
  const sinceLast = () => Math.min(performance.now() - lastMs, LONGEST_TICK_MS);
  const timer = setInterval(() => {
    countedMs += sinceLast();
    lastMs = performance.now();
  }, TICK_MS).unref();
  return {
    elapsed: () => countedMs + sinceLast(),
    get closed() {
      return closed;
    },
    close() {
      closed = true;
      clearInterval(timer);
    },
  };
}

export interface Insistence {
  readonly ownTime: OwnTime;
  /** When it began, by `ownTime`. Default: now. */
  readonly sinceMs?: number;
  /** An attempt has failed, and may have been carried out. */
  onFailure?(error: RedisAway): void;
}

/** @throws RedisAway once Redis cannot be waited for any longer. */
export async function insist<T>(attempt: () => Promise<T>, { ownTime, sinceMs, onFailure }: Insistence): Promise<T> {
  const beganMs = sinceMs ?? ownTime.elapsed();
  for (let tries = 1; ; tries += 1) {
    try {
      return await within(beganMs + LONGEST_MS, attempt(), ownTime);
    } catch (error) {
      if (!(error instanceof RedisAway) || ownTime.closed) throw error;
      onFailure?.(error);
      const tookMs = ownTime.elapsed() - beganMs;
      if (tookMs >= LONGEST_MS || (tookMs >= PATIENCE_MS && tries >= FEWEST_TRIES)) throw error;
    }
    await pause(BETWEEN_TRIES_MS);
  }
}

/** @throws RedisAway when time is up first. */
function within<T>(untilMs: number, answer: Promise<T>, { elapsed }: OwnTime): Promise<T> {
  return new Promise((resolve, reject) => {
    let patience: NodeJS.Timeout;
    const wait = () => {
      const leftMs = untilMs - elapsed();
      if (leftMs <= 0) reject(new RedisAway('no answer in time'));
      else patience = setTimeout(wait, leftMs);
    };
    wait();
    answer.finally(() => clearTimeout(patience)).then(resolve, reject);
  });
}
