import type { Redis } from 'ioredis';
import { loadedOnce } from '../loaded-once.ts';
import { watchReplaced } from './redis-replaced.ts';
import type { Replacement } from './redis-replaced.ts';
import { StoreAway } from './store-away.ts';

/** The one place that knows Redis. Every call ends soon, one way or the other. */
export interface RedisStore {
  /**
   * Runs a script on one key.
   *
   * @throws RedisAway when Redis cannot be reached, does not answer in time, or refuses to write.
   */
  run(script: RedisScript, key: string, ...args: string[]): Promise<string>;
  /**
   * Listens to a channel, on a connection of its own.
   *
   * @returns what ends it.
   */
  subscribe(channel: string, listener: ChannelListener): () => void;
  /** Whether there is a connection. */
  readonly connected: boolean;
  /** How many connections have stood, one after the other. What was true of Redis on an earlier one need not be now. */
  readonly connections?: number;
  /** The last time that another Redis took the place of this one, each another object; undefined where none ever did. */
  readonly replaced?: Replacement | undefined;
  /** Closes the connection at once. */
  close(): void;
}

export interface ChannelListener {
  onMessage(text: string): void;
  /** Messages are heard from now on; what was said before is not known. */
  onGap(): void;
}

/** A Lua script of one key that answers a string. */
export interface RedisScript {
  /** Unique in the program, in camelCase. */
  readonly name: string;
  readonly source: string;
}

/** Redis did not do what it was asked; whether it began to is not known. Its message is the reason, and holds no secret. */
export class RedisAway extends StoreAway {
  override readonly name = 'RedisAway';
}

export interface RedisStoreOptions {
  readonly url: string;
  /** How long one call may take, in milliseconds. Default 500. */
  readonly timeoutMs?: number;
}

const CONNECT_MS = 2_000;
/**
 * A connection that was forgotten on its way stands for a quarter of an hour, and nothing comes through. One on which nothing
 * is answered for so long is given up for another.
 */
const SILENT_MS = 3_000;
/** What a replica refuses with: it is not to be written to, or has lost its master. */
const DEMOTED = /^(?:READONLY|MASTERDOWN)\b/;
const RECONNECT_MS = 1_000;
/** Whoever listens alone would never find out. */
const PROBE_MS = 1_000;

/** Connects in the background. Whoever calls before the first connection stands waits for it, two seconds at most. */
export function connectRedis(options: RedisStoreOptions): RedisStore {
  let store: RedisStore | undefined;
  let closed = false;
  // Loaded where there is a Redis to speak to: most gateways have none.
  const open = loadedOnce(async () => {
    const { Redis: Client } = await import('ioredis');
    store = openRedis(clientOf(Client, options));
    if (closed) store.close();
    return store;
  });
  /** Whoever asks is told where that fails, and the next one tries again. */
  const opened = () =>
    open().catch((error: RedisError) => {
      throw new RedisAway(whyNot(error));
    });
  opened().catch(() => {});
  return {
    get connected() {
      return store?.connected ?? false;
    },
    get connections() {
      return store?.connections ?? 0;
    },
    get replaced() {
      return store?.replaced;
    },
    async run(...command) {
      return (store ?? (await opened())).run(...command);
    },
    subscribe(channel, listener) {
      let end: (() => void) | undefined;
      let retry: NodeJS.Timeout | undefined;
      let ended = false;
      begin();
      return () => {
        ended = true;
        clearTimeout(retry);
        end?.();
      };

      function begin(): void {
        open().then(
          (there) => {
            if (!ended) end = there.subscribe(channel, listener);
          },
          () => {
            if (!ended) retry = setTimeout(begin, PROBE_MS).unref();
          },
        );
      }
    },
    close() {
      closed = true;
      store?.close();
    },
  };
}

/** An error's message may name the machine's folders. */
function whyNot({ code }: RedisError): string {
  return `its client could not be loaded${code ? `: ${code}` : ''}`;
}

function clientOf(Client: typeof Redis, { url, timeoutMs = 500 }: RedisStoreOptions): Redis {
  return new Client(url, {
    // With its own defaults a call would hang for a minute while Redis is away, and be sent again on the next connection.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: timeoutMs,
    connectTimeout: CONNECT_MS,
    socketTimeout: SILENT_MS,
    retryStrategy: (attempt) => Math.min(50 * attempt, 1_000),
    reconnectOnError: createDemotion(),
  });
}

/**
 * A master that changes places with its replica keeps its connections, and refuses to write for ever; a new one leads to the
 * new master. Where it leads to the old one still, not every command that is refused asks for another.
 */
function createDemotion(): (error: Error) => boolean {
  let lastMs = -Infinity;
  return ({ message }) => {
    if (!DEMOTED.test(message) || performance.now() - lastMs < RECONNECT_MS) return false;
    lastMs = performance.now();
    return true;
  };
}

function openRedis(redis: Redis): RedisStore {
  /** Why there is no connection, as far as that is known. */
  let trouble: string | undefined;
  let connections = 0;
  redis.on('ready', () => {
    trouble = undefined;
    connections += 1;
  });
  redis.on('error', (error: RedisError) => {
    trouble = refusalOf(error) ?? error.code ?? trouble;
    // ioredis would go on, in database 0, which may be another deployment's.
    if (error.command?.name === 'select') redis.disconnect(true);
  });
  const replaced = watchReplaced(redis);
  const defined = new Set<string>();
  // A Redis that nobody has spoken to yet is not away: who took it for that would go on without the other replicas.
  const firstContact = new Promise<unknown>((resolve) => {
    redis.once('ready', resolve);
    redis.once('error', resolve);
    setTimeout(resolve, CONNECT_MS).unref();
  });

  return {
    get connected() {
      return redis.status === 'ready';
    },
    get connections() {
      return connections;
    },
    get replaced() {
      return replaced();
    },
    async run({ name, source }, key, ...args) {
      if (!defined.has(name)) {
        redis.defineCommand(name, { lua: source, numberOfKeys: 1 });
        defined.add(name);
      }
      await firstContact;
      try {
        return (
          (await (redis as unknown as Record<string, (...all: string[]) => Promise<string>>)[name]?.(key, ...args)) ??
          ''
        );
      } catch (error) {
        throw new RedisAway(whyFailed(error as RedisError));
      }
    },
    subscribe(channel, { onMessage, onGap }) {
      const subscriber = redis.duplicate({ autoResubscribe: false });
      // Its errors are those of the other connection, and told there.
      subscriber.on('error', () => {});
      subscriber.on('message', (_channel, text) => onMessage(text));
      subscriber.on('ready', () => {
        // Where that took too long, or was refused, all of it is tried again.
        subscriber
          .subscribe(channel)
          .then(onGap, () => (retry = setTimeout(() => subscriber.disconnect(true), PROBE_MS)));
      });
      let retry: NodeJS.Timeout | undefined;
      const probing = setInterval(() => {
        if (subscriber.status === 'ready') subscriber.ping().catch(() => {});
      }, PROBE_MS).unref();
      return () => {
        clearTimeout(retry);
        clearInterval(probing);
        subscriber.disconnect();
      };
    },
    close: () => redis.disconnect(),
  };

  function whyFailed(error: RedisError): string {
    const refusal = refusalOf(error);
    if (refusal || redis.status === 'ready') return refusal ?? error.code ?? error.message;
    return trouble ?? 'there is no connection';
  }
}

/** As the operating system, Redis and ioredis make them. */
interface RedisError extends Error {
  readonly code?: string;
  readonly command?: { readonly name: string };
}

/**
 * What Redis refused something for: its code and its first words, which stop before whatever it repeats of a command.
 * Undefined where it was not Redis that refused.
 */
function refusalOf({ name, message }: RedisError): string | undefined {
  if (name !== 'ReplyError') return undefined;
  return /^[A-Z]+(?: [\w'-]{1,20}(?![\w'-])){0,11}/.exec(message)?.[0] ?? 'refused';
}
