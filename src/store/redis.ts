import { Redis } from 'ioredis';
import type { Log } from '../log.ts';
import { StoreAway } from './store-away.ts';

/** The one place that knows Redis. Every call ends soon, one way or the other. */
export interface RedisStore {
  /**
   * Runs a script on one key.
   *
   * @throws RedisAway when Redis cannot be reached, does not answer in time, or refuses to write.
   */
  run(script: RedisScript, key: string, ...args: string[]): Promise<string>;
  /** Whether there is a connection. */
  readonly connected: boolean;
  /** Closes the connection at once. */
  close(): void;
}

/** A Lua script of one key that answers a string. */
export interface RedisScript {
  /** Unique in the program, in camelCase. */
  readonly name: string;
  readonly source: string;
}

/** Redis did not do what it was asked; whether it began to is not known. */
export class RedisAway extends StoreAway {
  override readonly name = 'RedisAway';
}

export interface RedisStoreOptions {
  readonly url: string;
  readonly log: Log;
  /** How long one call may take, in milliseconds. Default 500. */
  readonly timeoutMs?: number;
}

/** Connects in the background: whoever calls before there is a connection is told that Redis is away. */
export function connectRedis({ url, log, timeoutMs = 500 }: RedisStoreOptions): RedisStore {
  const redis = new Redis(url, {
    // With its own defaults a call would hang for a minute while Redis is away, and be sent again on the next connection.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: timeoutMs,
    connectTimeout: 2_000,
    retryStrategy: (attempt) => Math.min(50 * attempt, 1_000),
  });
  let away = false;
  redis.on('ready', () => {
    if (away) log.info({}, 'Redis is back');
    away = false;
  });
  // ioredis tells of every attempt to connect; once is enough.
  redis.on('error', (error: Error) => {
    if (!away) log.warn({ reason: error.message }, 'Redis is away');
    away = true;
  });
  const defined = new Set<string>();

  return {
    get connected() {
      return redis.status === 'ready';
    },
    async run({ name, source }, key, ...args) {
      if (!defined.has(name)) {
        redis.defineCommand(name, { lua: source, numberOfKeys: 1 });
        defined.add(name);
      }
      try {
        return (
          (await (redis as unknown as Record<string, (...all: string[]) => Promise<string>>)[name]?.(key, ...args)) ??
          ''
        );
      } catch (error) {
        throw new RedisAway((error as Error).message);
      }
    },
    close: () => redis.disconnect(),
  };
}
