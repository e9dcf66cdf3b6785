import { Redis as Client } from 'ioredis';
import { StoreUnavailableError } from './store.ts';

/** A connection to Redis with timeouts. */
export interface RedisConnection {
  /**
   * Runs a script on one key.
   *
   * @throws StoreUnavailableError when Redis is not reachable, too slow, or refuses to write.
   */
  run(script: RedisScript, key: string, ...args: string[]): Promise<string>;
  /**
   * Listens to a channel, on a second connection.
   *
   * @returns the function that stops listening.
   */
  subscribe(channel: string, listener: ChannelListener): () => void;
  /** Whether the connection is open. */
  readonly connected: boolean;
  /** Closes the connection at once. */
  close(): void;
}

export interface ChannelListener {
  onMessage(text: string): void;
  /** Messages arrive from now on; earlier ones may be lost. */
  onGap(): void;
}

/** A Lua script of one key that returns a string. */
export interface RedisScript {
  /** Unique in the program, in camelCase. */
  readonly name: string;
  readonly source: string;
}

export interface RedisOptions {
  readonly url: string;
  /** Timeout of one call, in milliseconds. Default 500. */
  readonly timeoutMs?: number;
}

const CONNECT_TIMEOUT_MS = 2_000;
/** Closes a connection without replies: a firewall may have dropped it, and TCP would take a quarter of an hour. */
const SILENCE_TIMEOUT_MS = 3_000;
/** Errors of a Redis replica: it takes no writes, or has lost its master. */
const DEMOTED = /^(?:READONLY|MASTERDOWN)\b/;
const MIN_BETWEEN_RECONNECTS_MS = 1_000;
/** A connection that only listens needs pings to find out that it is broken. */
const PING_INTERVAL_MS = 1_000;

/** Connects in the background. Calls before the first connection wait for it, two seconds at most. */
export function connectRedis({ url, timeoutMs = 500 }: RedisOptions): RedisConnection {
  const redis = new Client(url, {
    // With ioredis's defaults a command hangs for a minute while Redis is down, and is resent on the next connection.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: timeoutMs,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    retryStrategy: (attempt) => Math.min(50 * attempt, 1_000),
    reconnectOnError: createReconnectOnDemotion(),
  });
  /** Why there is no connection; undefined while not known. */
  let trouble: string | undefined;
  redis.on('ready', () => {
    trouble = undefined;
  });
  redis.on('error', (error: RedisError) => {
    trouble = refusalOf(error) ?? error.code ?? trouble;
    // ioredis would continue in database 0, which may be another deployment's.
    if (error.command?.name === 'select') redis.disconnect(true);
  });
  const defined = new Set<string>();
  // At the start Redis counts as unavailable only once the first connection has failed.
  const firstContact = new Promise<unknown>((resolve) => {
    redis.once('ready', resolve);
    redis.once('error', resolve);
    setTimeout(resolve, CONNECT_TIMEOUT_MS).unref();
  });

  return {
    get connected() {
      return redis.status === 'ready';
    },
    async run({ name, source }, key, ...args) {
      if (!defined.has(name)) {
        redis.defineCommand(name, { lua: source, numberOfKeys: 1 });
        defined.add(name);
      }
      await firstContact;
      const commands = redis as unknown as Record<string, (...all: string[]) => Promise<string>>;
      try {
        return (await commands[name]?.(key, ...args)) ?? '';
      } catch (error) {
        throw new StoreUnavailableError(reasonOf(error as RedisError));
      }
    },
    subscribe: (channel, listener) => subscribe(redis, channel, listener),
    close: () => redis.disconnect(),
  };

  function reasonOf(error: RedisError): string {
    const refusal = refusalOf(error);
    if (refusal || redis.status === 'ready') return refusal ?? error.code ?? error.message;
    return trouble ?? 'there is no connection';
  }
}

/**
 * Reconnects when a master was demoted: it keeps its connections and refuses writes, and a new connection leads to the new
 * master. At most once a second.
 */
function createReconnectOnDemotion(): (error: Error) => boolean {
  let lastAtMs = -Infinity;
  return ({ message }) => {
    if (!DEMOTED.test(message) || performance.now() - lastAtMs < MIN_BETWEEN_RECONNECTS_MS) return false;
    lastAtMs = performance.now();
    return true;
  };
}

function subscribe(redis: Client, channel: string, { onMessage, onGap }: ChannelListener): () => void {
  const subscriber = redis.duplicate({ autoResubscribe: false });
  // The other connection reports the same errors.
  subscriber.on('error', () => {});
  subscriber.on('message', (_channel, text) => onMessage(text));
  let retry: NodeJS.Timeout | undefined;
  subscriber.on('ready', () => {
    subscriber.subscribe(channel).then(onGap, () => {
      retry = setTimeout(() => subscriber.disconnect(true), PING_INTERVAL_MS);
    });
  });
  const pinging = setInterval(() => {
    if (subscriber.status === 'ready') subscriber.ping().catch(() => {});
  }, PING_INTERVAL_MS).unref();
  return () => {
    clearTimeout(retry);
    clearInterval(pinging);
    subscriber.disconnect();
  };
}

/** An error of the operating system, Redis or ioredis. */
interface RedisError extends Error {
  readonly code?: string;
  readonly command?: { readonly name: string };
}

/**
 * Returns why Redis refused a command: the code and the first words, without any part of the command. Undefined where the
 * error is not Redis's.
 */
function refusalOf({ name, message }: RedisError): string | undefined {
  if (name !== 'ReplyError') return undefined;
  return /^[A-Z]+(?: [\w'-]{1,20}(?![\w'-])){0,11}/.exec(message)?.[0] ?? 'refused';
}
