import type { Clock } from '../clock.ts';
import type { Pet } from '../pet.ts';
import { KEY_PREFIX } from '../store/redis-store.ts';
import type { RedisConnection, RedisScript } from '../store/redis.ts';
import type { PetCache } from './pet-cache.ts';
import { LISTS, isList } from './read-key.ts';
import type { ListName } from './read-key.ts';
import { listSnapshot } from './snapshot.ts';
import type { Snapshot } from './snapshot.ts';

export interface ReplicaCacheOptions {
  readonly redis: RedisConnection;
  readonly nameOf: (apiKey: string) => Promise<string> | string;
  /** Unique among the replicas of the Redis, without spaces. */
  readonly replica: string;
  /** How long a list is of use, in milliseconds. */
  readonly keptMs: number;
  readonly clock: Pick<Clock, 'elapsed'>;
  /** Whether Redis works, so that no read waits for one that does not. */
  works(): boolean;
}

const CHANNEL = 'petql:wrote';
const LOOK_EVERY_MS = 500;
/** A list is worth reading where it is younger by this; what a replica shared itself looks younger by the time of its call. */
const WORTH_MS = 250;
/** How soon a write is announced again that Redis did not take. */
const RESEND_MS = 250;
/** Longer than any call can take. */
const MAX_CALL_MS = 660_000;

/** For the beginning of a script: the time by Redis's own clock, in milliseconds since the epoch. */
const REDIS_NOW = `
local function redisNowMs()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
`;

/**
 * A caller's hash: `version` names the last write, and each list is kept with the moment that it is as of by Redis's own
 * clock, so that no two processes' clocks are ever compared. The script gets each list's name and its age here.
 */
const LOOK: RedisScript = {
  name: 'petqlLook',
  source: `${REDIS_NOW}
local younger = {}
for index = 1, #ARGV, 2 do
  local asOfMs = redis.call('HGET', KEYS[1], 'asOf ' .. ARGV[index])
  local ageMs = asOfMs and math.max(0, redisNowMs() - tonumber(asOfMs))
  if ageMs and ageMs + ${WORTH_MS} < tonumber(ARGV[index + 1]) then
    table.insert(younger, { name = ARGV[index], ageMs = ageMs, text = redis.call('HGET', KEYS[1], ARGV[index]) })
  end
end
return cjson.encode({ version = redis.call('HGET', KEYS[1], 'version') or '', younger = younger })
`,
};

/** Only where no write came in between, and nothing younger is there. */
const SHARE: RedisScript = {
  name: 'petqlShare',
  source: `${REDIS_NOW}
local version, name, ageMs, text, keptMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
if (redis.call('HGET', KEYS[1], 'version') or '') ~= version then return '' end
local asOfMs = redisNowMs() - ageMs
if asOfMs <= tonumber(redis.call('HGET', KEYS[1], 'asOf ' .. name) or '0') then return '' end
redis.call('HSET', KEYS[1], 'asOf ' .. name, string.format('%.0f', asOfMs), name, text)
redis.call('PEXPIRE', KEYS[1], keptMs)
return ''
`,
};

/** A user without the right to publish still stores the version, which the others see when they look. */
const WROTE: RedisScript = {
  name: 'petqlWrote',
  source: `
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'version', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.pcall('PUBLISH', '${CHANNEL}', ARGV[3])
return ''
`,
};

export type ReplicaCache = ReturnType<typeof createReplicaCache>;
/** What one caller of this process shares. */
export type CallerReplicas = ReturnType<ReplicaCache['join']>;

/** Shares lists, and the invalidation by writes, between the replicas of one Redis. Nothing here ever rejects. */
export function createReplicaCache({ redis, nameOf, replica, clock, works, ...options }: ReplicaCacheOptions) {
  const keptMs = options.keptMs + MAX_CALL_MS;
  const members = new Set<Member>();
  let writes = 0;
  const unsubscribe = redis.subscribe(CHANNEL, {
    onMessage(text) {
      // Anything may be published here: a message that names no caller of this process is ignored.
      const [by, name, version = ''] = text.split(' ');
      if (by === replica) return;
      for (const member of members) if (member.name === name) member.invalidate(version);
    },
    onGap() {
      for (const member of members) member.reset();
    },
  });
  return { join, close: unsubscribe };

  /** @param learn takes a list that another replica has called for. */
  function join(apiKey: string, cache: PetCache, learn: (snapshot: Snapshot) => void) {
    let version = '';
    /** The version of the last write of this process that Redis did not take yet. */
    let unsent: string | undefined;
    let resending: NodeJS.Timeout | undefined;
    let wroteAtMs = -Infinity;
    let lookedAtMs = -Infinity;
    let looking: Promise<void> | undefined;
    const member: Member = {
      name: undefined,
      invalidate,
      reset() {
        // Messages may have been missed, and Redis may have lost its data: a write of this process is announced again.
        invalidate('');
        if (clock.elapsed() - wroteAtMs < keptMs) void announce();
      },
    };
    members.add(member);

    return {
      /** Whether the last look was long enough ago. */
      isLookDue: () => works() && clock.elapsed() - lookedAtMs >= LOOK_EVERY_MS,
      /** Learns what is younger elsewhere; settles at once while Redis is unavailable. */
      look(): Promise<void> {
        lookedAtMs = clock.elapsed();
        looking ??= quietly(fetchYounger).finally(() => {
          looking = undefined;
        });
        return looking;
      },
      /** @param snapshot of the current generation, and so of the current version. */
      share({ key, pets, isComplete, asOfMs }: Snapshot) {
        const seen = version;
        if (!isList(key)) return;
        void quietly(async () => {
          const hash = await hashOf();
          const text = JSON.stringify({ pets, complete: isComplete } satisfies SharedList);
          const ageMs = String(Math.ceil(clock.elapsed() - asOfMs));
          await redis.run(SHARE, hash, seen, key, ageMs, text, String(keptMs));
        });
      },
      /** Announces a write. Settles once Redis has it, or at once while Redis is unavailable. */
      wrote(): Promise<void> {
        wroteAtMs = clock.elapsed();
        return announce();
      },
      leave: () => void members.delete(member),
    };

    function invalidate(latest: string): void {
      version = latest;
      cache.invalidate();
    }

    function announce(): Promise<void> {
      writes += 1;
      version = unsent = `${replica}:${writes}`;
      return send();
    }

    async function send(): Promise<void> {
      const sending = unsent;
      if (sending === undefined) return;
      await quietly(async () => {
        const hash = await hashOf();
        await redis.run(WROTE, hash, sending, String(keptMs), `${replica} ${member.name} ${sending}`);
        if (unsent === sending) unsent = undefined;
      });
      clearTimeout(resending);
      if (unsent !== undefined) resending = setTimeout(() => void send(), RESEND_MS).unref();
    }

    async function fetchYounger(): Promise<void> {
      await send();
      const hash = await hashOf();
      const generation = cache.generation();
      const startedAtMs = clock.elapsed();
      const ageOf = (list: ListName) =>
        Math.floor(startedAtMs - (cache.find(list)?.asOfMs ?? -Number.MAX_SAFE_INTEGER));
      const ages = LISTS.flatMap((list) => [list, String(ageOf(list))]);
      const shared = JSON.parse(await redis.run(LOOK, hash, ...ages)) as Shared;
      // A write came meanwhile: the answer may be from before it.
      if (cache.generation() !== generation) return;
      if (shared.version !== version) invalidate(shared.version);
      for (const { name, ageMs, text } of Object.values(shared.younger)) {
        // As of the moment before the look, so that the age is never taken for less than it is.
        learn(listSnapshot(name, JSON.parse(text) as SharedList, startedAtMs - ageMs, cache.known));
      }
    }

    /** The name changes where Redis was emptied and the replicas have agreed on another secret. */
    async function hashOf(): Promise<string> {
      member.name = await nameOf(apiKey);
      return `${KEY_PREFIX}lists:${member.name}`;
    }
  }

  /** Each replica keeps to its own cache while Redis is unavailable. */
  async function quietly(run: () => Promise<void>): Promise<void> {
    if (!works()) return;
    try {
      await run();
    } catch {
      // The next one finds out whether Redis is back.
    }
  }
}

/** A caller as the channel sees it. */
interface Member {
  name: string | undefined;
  invalidate(version: string): void;
  reset(): void;
}

/** A list as Redis keeps it. */
interface SharedList {
  readonly pets: readonly Pet[];
  readonly complete: boolean;
}

interface Shared {
  readonly version: string;
  /** Lua encodes an empty list as an object. */
  readonly younger: readonly { readonly name: ListName; readonly ageMs: number; readonly text: string }[];
}
