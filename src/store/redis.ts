import { Cluster, Redis as Client, SentinelConnector } from 'ioredis';
import type { RedisOptions, SentinelConnectionOptions } from 'ioredis';
import { OnceLog } from '../common/log.ts';
import type { Log } from '../common/log.ts';
import { isSentinel, redisUrls } from './redis-urls.ts';
import { waitAtMost } from '../common/time-limit.ts';
import { StoreUnavailableError } from './store.ts';
import {
  REDIS_COMMAND_TIMEOUT_MS,
  REDIS_CONNECT_TIMEOUT_MS,
  REDIS_DISCONNECT_MS,
  REDIS_SILENCE_MS,
  REDIS_TICK_MS,
} from '../common/times.ts';

/** A connection to Redis with timeouts. */
export interface RedisConnection {
  /**
   * Carries out the action if the stored text begins with the version, or the version is `*`, in one atomic step. A compare that
   * wins reads 36 characters, however long the text is.
   *
   * @returns `won` or `lost`, Redis's time in milliseconds, and after a lost compare the stored text: separated by spaces.
   * @throws StoreUnavailableError when Redis is not reachable, too slow, or rejects the write.
   */
  readonly compareAndSet: (
    key: string,
    version: string,
    action: 'delete' | 'keep' | 'set',
    ...textAndTtl: string[]
  ) => Promise<string>;
  /** Closes the connection at once. */
  readonly close: () => void;
  /** Whether each document has the time of its own node. Default false. */
  readonly hasManyClocks?: boolean | undefined;
}

/** Errors of a demoted master: it keeps its connections and rejects writes, and a new connection leads to the new master. */
const DEMOTED = /^(?:READONLY|MASTERDOWN)\b/;

const COMPARE_AND_SET = `
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[1] ~= '*' and redis.call('GETRANGE', KEYS[1], 0, 35) ~= ARGV[1] then
  return 'lost ' .. nowMs .. ' ' .. (redis.call('GET', KEYS[1]) or '')
end
if ARGV[2] == 'set' then redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4]) end
if ARGV[2] == 'delete' then redis.call('DEL', KEYS[1]) end
return 'won ' .. nowMs .. ' '
`;

const CONNECTION = {
  // Needs no right to run CLIENT, which could end others' connections.
  disableClientInfo: true,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  connectTimeout: REDIS_CONNECT_TIMEOUT_MS,
  disconnectTimeout: REDIS_DISCONNECT_MS,
  socketTimeout: REDIS_SILENCE_MS,
};

/**
 * Connects in the background. Calls before the first connection wait for it, two seconds at most.
 *
 * @param log gets one line where Redis evicts what it should keep.
 */
export function connectRedis(url: string, log: Log): RedisConnection {
  const redis = openClient(url);
  const warnings = new OnceLog(log);
  /** Why there is no connection; undefined before the first error. */
  let trouble: string | undefined;

  redis.on('ready', () => {
    trouble = undefined;
    // A Cluster would open connections to nodes that it does not use yet.
    if (redis instanceof Client) void warnOfEviction(redis, warnings);
  });
  redis.on('error', (error: RedisError) => {
    const cause = error.lastNodeError ?? error;
    trouble = rejectionOf(cause) ?? cause.code ?? sentinelTrouble(cause) ?? trouble;
    // ioredis would continue in database 0, which may be another deployment's.
    if (error.command?.name === 'select') redis.disconnect(true);
  });
  redis.defineCommand('compareAndSet', { lua: COMPARE_AND_SET, numberOfKeys: 1 });
  const firstContact = contact();

  return {
    async compareAndSet(...args) {
      await firstContact;
      const isConnected = redis.status === 'ready';
      try {
        // A timeout of ioredis would fail a reply that has arrived while the event loop stalled.
        const reply = await waitAtMost(
          (redis as unknown as RedisConnection).compareAndSet(...args),
          REDIS_COMMAND_TIMEOUT_MS,
        );
        if (reply !== undefined) return reply;
      } catch (error) {
        // A script that Redis rejects has written nothing.
        const mayBeWritten = isConnected && (error as RedisError).name !== 'ReplyError';
        throw new StoreUnavailableError(reasonOf(error as RedisError), { mayBeWritten });
      }
      throw new StoreUnavailableError('Command timed out');
    },
    close: () => redis.disconnect(),
    hasManyClocks: redis.isCluster,
  };

  /** At the start Redis counts as unavailable only once a connection has failed. */
  async function contact(): Promise<void> {
    let ticks: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      redis.once('ready', resolve);
      // One that has timed out may be the event loop's fault, so the next one counts.
      redis.on('error', (error: RedisError) => !isTimeout(error) && resolve());
      let leftMs = REDIS_CONNECT_TIMEOUT_MS;
      // While the event loop stalls there is one tick.
      ticks = setInterval(() => (leftMs -= REDIS_TICK_MS) <= 0 && resolve(), REDIS_TICK_MS).unref();
    });
    clearInterval(ticks);
  }

  function reasonOf(error: RedisError): string {
    const rejection = rejectionOf(error);
    if (rejection || redis.status === 'ready') return rejection ?? error.code ?? error.message;
    return trouble ?? 'there is no connection';
  }
}

/** An evicted document is a second pet, or a count that begins anew. Without the right to ask there is no warning. */
async function warnOfEviction(redis: Client, log: OnceLog): Promise<void> {
  const info = await redis.info('memory').catch(() => '');
  const [, policy = 'noeviction'] = /^maxmemory_policy:(\S+)/m.exec(info) ?? [];
  const isBounded = !/^maxmemory:0\r?$/m.test(info);
  if (policy !== 'noeviction' && isBounded) log.warn({ policy }, EVICTS);
}

const EVICTS =
  'Redis evicts counts and idempotency keys when its memory is full: set maxmemory-policy noeviction, as compose.yaml has it';

function retryAfterMs(attempt: number): number {
  return Math.min(50 * attempt, 1_000);
}

const ONE_MASTER = {
  ...CONNECTION,
  // With ioredis's defaults a command hangs for a minute while Redis is down, and is resent on the next connection.
  enableOfflineQueue: false,
  retryStrategy: retryAfterMs,
  reconnectOnError: ({ message }: Error) => DEMOTED.test(message),
};

function openClient(url: string): Client | Cluster {
  const nodes = redisUrls(url) ?? [];
  const [first] = nodes;
  if (first && isSentinel(first)) return openMaster(sentinelOptions(first, nodes));
  if (!first || nodes.length === 1) return new Client(url, ONE_MASTER);

  const { protocol, searchParams } = first;
  const isSecure = protocol === 'rediss:';
  return new Cluster(
    nodes.map((node) => addressOf(node, 6379)),
    {
      enableOfflineQueue: false,
      // A command that may have been carried out is not sent again.
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      slotsRefreshTimeout: REDIS_CONNECT_TIMEOUT_MS,
      clusterRetryStrategy: retryAfterMs,
      keyPrefix: searchParams.get('keyPrefix') ?? '',
      // Certificates are for names.
      ...(isSecure && { dnsLookup: (name, found) => found(null, name) }),
      redisOptions: {
        ...CONNECTION,
        ...userOf(first),
        family: Number(searchParams.get('family')),
        ...(isSecure && { tls: {} }),
      },
    },
  );
}

/** Where no Sentinel answers, ioredis would keep the process for two seconds after the last try. */
class MasterConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
    const connect = this['connectToSentinel'] as ConnectToSentinel;
    this['connectToSentinel'] = ((address) =>
      connect.call(this, address, { disconnectTimeout: REDIS_DISCONNECT_MS })) satisfies ConnectToSentinel;
  }
}

/** Private, so the tests of the end of a process hold it. */
type ConnectToSentinel = (address: unknown, options?: RedisOptions) => Client;

/** Opens connections to the master that a Sentinel names, and leaves it once a Sentinel names another. */
function openMaster(options: ReturnType<typeof sentinelOptions>): Client {
  const { name, sentinels, sentinelUsername, sentinelPassword, sentinelTLS, family } = options;
  const redis = new Client({ ...ONE_MASTER, ...options, Connector: MasterConnector });
  /** Whether the connection that is being made may be to the old master. ioredis ends for good where one is cut before its time. */
  let isReplaced = false;
  redis.on('ready', leaveReplaced);

  for (const address of sentinels) {
    // ioredis does the same by its failoverDetector, and prints each error with the address.
    const sentinel = new Client({
      ...address,
      username: sentinelUsername,
      password: sentinelPassword,
      family,
      tls: sentinelTLS,
      disableClientInfo: true,
      enableReadyCheck: false,
      connectTimeout: REDIS_CONNECT_TIMEOUT_MS,
      disconnectTimeout: REDIS_DISCONNECT_MS,
      maxRetriesPerRequest: null,
      retryStrategy: retryAfterMs,
    });
    sentinel.on('error', () => {});
    // After a planned failover the old master takes writes for ten seconds more, which are lost.
    sentinel.on('message', (_channel: string, text: string) => {
      isReplaced ||= text.startsWith(`${name} `);
      leaveReplaced();
    });
    sentinel.subscribe('+switch-master').catch(() => {});
    redis.once('end', () => sentinel.disconnect());
  }
  return redis;

  function leaveReplaced(): void {
    if (!isReplaced || redis.status !== 'ready') return;
    isReplaced = false;
    redis.disconnect(true);
  }
}

function sentinelOptions(url: URL, sentinels: readonly URL[]) {
  const { protocol, pathname, searchParams } = url;
  const isSecure = protocol.startsWith('rediss');
  return {
    name: pathname.slice(1),
    sentinels: sentinels.map((sentinel) => addressOf(sentinel, 26379)),
    sentinelUsername: searchParams.get('sentinelUsername') ?? undefined,
    sentinelPassword: searchParams.get('sentinelPassword') ?? undefined,
    sentinelCommandTimeout: REDIS_COMMAND_TIMEOUT_MS,
    sentinelRetryStrategy: retryAfterMs,
    ...userOf(url),
    db: Number(searchParams.get('db')),
    family: Number(searchParams.get('family')),
    keyPrefix: searchParams.get('keyPrefix') ?? '',
    ...(isSecure && { enableTLSForSentinelMode: true, tls: {}, sentinelTLS: {} }),
  };
}

function addressOf({ hostname, port }: URL, defaultPort: number): { host: string; port: number } {
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || defaultPort };
}

function userOf({ username, password }: URL) {
  return { username: decodeURIComponent(username) || undefined, password: decodeURIComponent(password) || undefined };
}

/** An error of the operating system, Redis or ioredis. */
interface RedisError extends Error {
  readonly code?: string;
  readonly command?: { readonly name: string };
  /** Why the last node of a Cluster could not be reached. */
  readonly lastNodeError?: RedisError;
}

function isTimeout({ code, message }: RedisError): boolean {
  return code === 'ETIMEDOUT' || message.startsWith('Socket timeout');
}

/** Returns why there is no address of a master; undefined for other errors. The message has addresses of Sentinels. */
function sentinelTrouble({ message }: RedisError): string | undefined {
  if (!message.startsWith('All sentinels are unreachable')) return undefined;
  const [, rejection] = /Last error: (NOAUTH|NOPERM|WRONGPASS)\b/.exec(message) ?? [];
  return rejection ? `${rejection} of a Sentinel` : 'no Sentinel names a master';
}

/** Returns why Redis rejected a command: the code and the first words, no part of the command. Undefined for other errors. */
function rejectionOf({ name, message }: RedisError): string | undefined {
  if (name !== 'ReplyError') return undefined;
  return /^[A-Z]+(?: [\w'-]{1,20}(?![\w'-])){0,11}/.exec(message)?.[0] ?? 'rejected';
}
