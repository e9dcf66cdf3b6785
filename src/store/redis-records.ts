import { RECORDS_LIVE_MS } from './records.ts';
import type { Records } from './records.ts';
import { REDIS_NOW } from './redis-now.ts';
import type { RedisScript, RedisStore } from './redis.ts';

/** The records of all replicas that share a Redis, by its clock. It keeps as many as its memory holds, then refuses. */
export function createRedisRecords(redis: RedisStore): Records {
  return {
    async find(name, input) {
      const found = await redis.run(FIND, keyOf(name));
      if (!found) return undefined;
      const kept = JSON.parse(found) as Found;
      return { isSame: kept.input === input, outcome: kept.outcome, openForMs: kept.openForMs };
    },
    async begin(name, { id, input, leaseMs }) {
      const begun = await redis.run(BEGIN, keyOf(name), id, input, String(leaseMs), LIVE_MS);
      return { kind: begun ? 'begun' : 'taken' };
    },
    async settle(name, { id, input }, outcome) {
      await redis.run(SETTLE, keyOf(name), id, input, outcome, LIVE_MS);
    },
    async release(name, { id }) {
      await redis.run(RELEASE, keyOf(name), id);
    },
    close: () => Promise.resolve(),
  };
}

/** As the script says it. */
interface Found {
  readonly input: string;
  readonly outcome?: string;
  readonly openForMs: number;
}

const LIVE_MS = String(RECORDS_LIVE_MS);

function keyOf(name: string): string {
  return `petql:record:${name}`;
}

const FIND: RedisScript = {
  name: 'petqlFindRecord',
  source: `${REDIS_NOW}
local kept = redis.call('HMGET', KEYS[1], 'input', 'outcome', 'openUntilMs')
if not kept[1] then return '' end
return cjson.encode({
  input = kept[1],
  outcome = kept[2] or nil,
  openForMs = math.max(0, tonumber(kept[3]) - redisNowMs()),
})
`,
};

const BEGIN: RedisScript = {
  name: 'petqlBeginRecord',
  source: `${REDIS_NOW}
if redis.call('EXISTS', KEYS[1]) == 1 then return '' end
redis.call('HSET', KEYS[1], 'attempt', ARGV[1], 'input', ARGV[2], 'openUntilMs', redisNowMs() + ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 'begun'
`,
};

const SETTLE: RedisScript = {
  name: 'petqlSettleRecord',
  source: `
local attempt = redis.call('HGET', KEYS[1], 'attempt')
if attempt and attempt ~= ARGV[1] then return '' end
redis.call('HSET', KEYS[1], 'attempt', ARGV[1], 'input', ARGV[2], 'outcome', ARGV[3], 'openUntilMs', 0)
if not attempt then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return 'settled'
`,
};

const RELEASE: RedisScript = {
  name: 'petqlReleaseRecord',
  source: `
if redis.call('HGET', KEYS[1], 'attempt') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return ''
`,
};
