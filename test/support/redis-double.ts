import type { RedisConnection } from '../../src/store/redis.ts';
import { StoreUnavailableError } from '../../src/store/store.ts';
import { between, createRandom } from './random.ts';
import type { Petql, StartOptions, World } from './world.ts';

/** A double of a Redis in the same process, on the clock of the moment. */
export interface Redis {
  /** The connection of one replica: replies come in the order of its commands, or not within the 500 ms of the real one. */
  readonly connect: () => CuttableConnection;
  /** What is wrong with it. Default undefined: nothing. */
  fault: RedisFault | undefined;
  /** FLUSHALL. */
  readonly empty: () => void;
  /** What a replica of Redis has of it, to which `restore` fails over. */
  readonly snapshot: () => RedisSnapshot;
  readonly restore: (snapshot: RedisSnapshot) => void;
  /** The names of its documents that have not expired. */
  readonly names: () => string[];
  /** Compares that were won and lost. */
  readonly compares: { readonly won: number; readonly lost: number };
}

type RedisSnapshot = ReadonlyMap<string, { readonly text: string; readonly endsAtMs: number }>;

export interface CuttableConnection extends RedisConnection {
  /** Cuts this replica off, while the others reach Redis; or ends that. */
  readonly cut: (isCut: boolean) => void;
}

/**
 * `down`: every command fails at once. `hanging`: nothing is answered, and what was sent is carried out once the fault is over.
 * `mute`: all is carried out, and no reply arrives. `slow`: a reply takes 150 ms. `read-only`: a write fails.
 */
export type RedisFault = 'down' | 'hanging' | 'mute' | 'read-only' | 'slow';

export interface RedisOptions {
  readonly seed: number;
  /** How long a command takes there, and a reply as long again: from, to. Default 0 to 1. */
  readonly latencyMs?: readonly [from: number, to: number];
  /** Milliseconds that its clock is ahead of the pet API's. Default 0. */
  readonly aheadMs?: number;
}

const COMMAND_TIMEOUT_MS = 500;
const SLOW_LEG_MS = 75;

export function createRedis({ seed, latencyMs: [fastestMs, slowestMs] = [0, 1], aheadMs = 0 }: RedisOptions): Redis {
  const random = createRandom(seed);
  const texts = new Map<string, { readonly text: string; readonly endsAtMs: number }>();
  /** What a hanging Redis has received. */
  const received: (() => void)[] = [];
  const compares = { won: 0, lost: 0 };
  let fault: RedisFault | undefined;
  const legMs = () => (fault === 'slow' ? SLOW_LEG_MS : between(random, fastestMs, slowestMs));
  const nowMs = () => Date.now() + aheadMs;

  return {
    connect,
    compares,
    get fault() {
      return fault;
    },
    set fault(next) {
      fault = next;
      if (next !== 'hanging') for (const carryOut of received.splice(0)) carryOut();
    },
    empty() {
      texts.clear();
    },
    snapshot: () => new Map(texts),
    restore(snapshot) {
      texts.clear();
      for (const [name, kept] of snapshot) texts.set(name, kept);
    },
    names: () => [...texts].filter(([, { endsAtMs }]) => endsAtMs > nowMs()).map(([name]) => name),
  };

  function connect(): CuttableConnection {
    let isClosed = false;
    let isCut = false;
    let arrivesAtMs = 0;
    let repliesAtMs = 0;
    return {
      close() {
        isClosed = true;
      },
      cut(cut) {
        isCut = cut;
      },
      compareAndSet: (key, version, action, ...textAndTtl) =>
        new Promise((resolve, reject) => {
          const fail = (reason: string) => {
            clearTimeout(timeout);
            reject(new StoreUnavailableError(reason));
          };
          const timeout = setTimeout(() => fail('Command timed out'), COMMAND_TIMEOUT_MS);
          if (isClosed) return fail('Connection is closed.');
          if (isCut || fault === 'down') return fail('ECONNREFUSED');
          const carryOut = () => {
            if (fault === 'down') return fail('ECONNRESET');
            if (fault === 'hanging') return void received.push(carryOut);
            const isRefused = fault === 'read-only' && action !== 'keep';
            const reply = isRefused ? '' : compareAndSet(key, version, action, textAndTtl);
            repliesAtMs = Math.max(repliesAtMs, Date.now() + legMs());
            setTimeout(
              () => {
                if (isClosed || isCut || fault === 'mute') return;
                if (fault === 'down') return fail('ECONNRESET');
                if (isRefused) return fail("READONLY You can't write against a read only replica.");
                clearTimeout(timeout);
                resolve(reply);
              },
              Math.max(0, repliesAtMs - Date.now()),
            );
          };
          arrivesAtMs = Math.max(arrivesAtMs, Date.now() + legMs());
          setTimeout(carryOut, arrivesAtMs - Date.now());
        }),
    };
  }

  function compareAndSet(key: string, version: string, action: string, [text = '', ttlMs]: readonly string[]): string {
    const kept = texts.get(key);
    const found = kept && kept.endsAtMs > nowMs() ? kept.text : '';
    if (version !== '*' && found.slice(0, 36) !== version) {
      compares.lost += 1;
      return `lost ${nowMs()} ${found}`;
    }
    compares.won += 1;
    if (action === 'set') texts.set(key, { text, endsAtMs: nowMs() + Number(ttlMs) });
    if (action === 'delete') texts.delete(key);
    return `won ${nowMs()} `;
  }
}

/** Starts replicas with a Redis in common. Their own clocks are up to 15 s apart. */
export async function startReplicas(
  world: World,
  redis: Redis,
  count: number,
  options: StartOptions = {},
): Promise<[Petql, ...Petql[]]> {
  const replicas: Petql[] = [];
  for (let index = 0; index < count; index += 1) {
    const aheadMs = (index % 3) * 7_500;
    replicas.push(
      await world.start({ redisUrl: 'redis://redis.test', redisConnection: redis.connect(), aheadMs, ...options }),
    );
  }
  return replicas as [Petql, ...Petql[]];
}
