import type { Kept } from '../../src/store/records.ts';
import { openStateFile } from '../../src/store/state-file.ts';
import { RedisAway } from '../../src/store/redis.ts';
import type { RedisStore } from '../../src/store/redis.ts';

/** A Redis in this process, for fake time: petql's scripts, each answered as late as the test says. */
export interface StallingRedis {
  readonly store: RedisStore;
  /** From now on an answer takes so long; Infinity for one that hangs. What was sent is carried out half way. */
  setLatency(ms: number): void;
  /** Another one takes its place, on a new connection: it knows nothing but the key secret that others have agreed on there. */
  replace(secret: string): void;
  /** petql asks for a script. */
  onAsked: (name: string) => void;
  /** The names of the scripts that were asked for, in their order; without the heartbeats. */
  readonly asked: readonly string[];
  /** Those that petql gave up, in the order in which it did; heartbeats too. */
  readonly givenUp: readonly string[];
}

/** As petql gives up a command of the real one. */
export const COMMAND_MS = 500;

export function createStallingRedis(): StallingRedis {
  let { records } = openStateFile(':memory:', Date.now);
  const inputs = new Map<string, string>();
  let secret = 'a secret';
  let connections = 1;
  const asked: string[] = [];
  const givenUp: string[] = [];
  let latencyMs = 0;
  const redis: StallingRedis = {
    asked,
    givenUp,
    onAsked: () => {},
    setLatency(ms) {
      latencyMs = ms;
    },
    replace(another) {
      ({ records } = openStateFile(':memory:', Date.now));
      inputs.clear();
      secret = another;
      connections += 1;
    },
    store: {
      connected: true,
      get connections() {
        return connections;
      },
      async run({ name }, key, ...args) {
        if (name === 'petqlHeartbeat') return within(() => '1', latencyMs, name);
        asked.push(name);
        redis.onAsked(name);
        return within(() => carryOut(name, key, args), latencyMs, name);
      },
      subscribe: () => () => {},
      close: () => {},
    },
  };
  return redis;

  function within(carryOutNow: () => Promise<string> | string, tookMs: number, name: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const patience = setTimeout(() => {
        givenUp.push(name);
        reject(new RedisAway('Command timed out'));
      }, COMMAND_MS);
      if (tookMs === Infinity) return;
      setTimeout(() => {
        const answer = carryOutNow();
        setTimeout(() => {
          clearTimeout(patience);
          resolve(answer);
        }, tookMs / 2);
      }, tookMs / 2);
    });
  }

  async function carryOut(name: string, key: string, args: readonly string[]): Promise<string> {
    const [id = '', second = '', third = ''] = args;
    const attempt = { id, input: second, leaseMs: Number(third) };
    switch (name) {
      case 'petqlKeySecret':
        return secret;
      case 'petqlFindRecord':
        return found(key, await records.find(key, ''));
      case 'petqlBeginRecord': {
        const { kind } = await records.begin(key, attempt);
        if (kind === 'begun') inputs.set(key, second);
        return kind === 'begun' ? 'begun' : '';
      }
      case 'petqlSettleRecord':
        inputs.set(key, second);
        await records.settle(key, attempt, third);
        return '';
      case 'petqlReleaseRecord':
        await records.release(key, attempt);
        return '';
      default:
        return '';
    }
  }

  function found(key: string, kept: Kept | undefined): string {
    return kept ? JSON.stringify({ input: inputs.get(key), outcome: kept.outcome, openForMs: kept.openForMs }) : '';
  }
}
