import { randomUUID } from 'node:crypto';
import { silentLog } from '../log.ts';
import type { Log } from '../log.ts';
import type { RedisStore } from '../store/redis.ts';
import { LEDGER_SCRIPT } from './ledger-script.ts';
import type { LedgerRules } from './ledger-state.ts';
import type { Closed, Exchange, Grant, Ledger, Standing } from './ledger.ts';

const SCRIPT = { name: 'petqlLedger', source: LEDGER_SCRIPT };

export interface RedisLedgerOptions {
  readonly redis: RedisStore;
  readonly rules: LedgerRules;
  /** What a caller is called in Redis, where its key must not stand. */
  nameOf(apiKey: string): Promise<string> | string;
  /** Which replica this is, among those that share the Redis. */
  readonly replica: string;
  /** Default: none. */
  readonly log?: Log;
  /** For tests that move time; Redis's own clock otherwise. */
  readonly now?: () => number;
}

export interface RedisLedger extends Ledger {
  /**
   * @param id one that no other exchange of this replica has. The same exchange may be sent again under the same id where
   * no answer came: it is carried out once.
   * @throws RedisAway
   */
  exchange(apiKey: string, exchange: Exchange, id?: string): Promise<Standing>;
}

/** The ledger of all replicas that share a Redis: one script an exchange, one round trip. */
export function createRedisLedger(options: RedisLedgerOptions): RedisLedger {
  const { redis, rules, nameOf, replica, log = silentLog, now } = options;
  let leftAloneTold = false;

  return {
    async exchange(apiKey, exchange, id = randomUUID()) {
      const request = JSON.stringify({ ...exchange, rules, replica, id, generation: randomUUID() });
      const answer = await redis.run(SCRIPT, `petql:ledger:${await nameOf(apiKey)}`, request, now ? String(now()) : '');
      const { whole, leftAlone, ...said } = JSON.parse(answer) as ScriptAnswer;
      if (!whole) {
        log.warn({}, 'what Redis had of one key made no sense; what was spent with it is found out anew');
      }
      if (leftAlone && !leftAloneTold) {
        log.warn({}, 'a newer petql keeps its calls in this Redis; the keys that it uses are left to it');
        leftAloneTold = true;
      }
      return standingOf(said);
    },
    close: () => Promise.resolve(),
  };
}

interface ScriptAnswer extends Omit<Standing, 'closed' | 'grants'> {
  readonly closed?: Closed;
  readonly granted: number;
  readonly firstStart: number;
  readonly countedBefore: number;
  readonly grantedAtMs: number;
  readonly probe: boolean;
  /** Whether all that was kept could be used. */
  readonly whole: boolean;
  /** Whether what was kept is of a newer petql. */
  readonly leftAlone: boolean;
}

function standingOf({
  granted,
  firstStart,
  countedBefore,
  grantedAtMs,
  probe,
  closed,
  ...rest
}: Omit<ScriptAnswer, 'leftAlone' | 'whole'>): Standing {
  const { generation } = rest;
  const grants: Grant[] = Array.from({ length: granted }, (_, index) => ({
    generation,
    start: firstStart + index,
    countedBefore,
    grantedAtMs,
    probe,
  }));
  return { grants, closed, ...rest };
}
