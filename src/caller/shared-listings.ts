import type { Clock } from '../clock.ts';
import type { Pet } from '../pet.ts';
import { REDIS_NOW } from '../store/redis-now.ts';
import type { RedisScript, RedisStore } from '../store/redis.ts';
import type { CallerNames } from '../throttle/caller-names.ts';
import { LISTINGS } from './call.ts';
import type { ListingName } from './call.ts';
import { listingFact } from './fact.ts';
import type { Fact } from './fact.ts';

/** Passes listings, and word of writes, between the replicas that share a Redis. Nothing here ever rejects. */
export interface SharedListings {
  /** A caller's part of it. */
  join(apiKey: string, listener: ListingsListener): CallerListings;
  close(): void;
}

/** What happens elsewhere. */
export interface ListingsListener {
  /** Another replica has asked for a listing. */
  learn(fact: Fact): void;
  /** Another replica has written for this caller, or may have: what was known is known no more. */
  wrote(): void;
}

export interface CallerListings {
  /** Learns what is younger elsewhere; settles at once while Redis is away. */
  sync(): Promise<void>;
  /** The same in the background and now and then, for those who do not wait for it. */
  glance(): void;
  /** Which writes are known of; a listing asked for now may be shared under it. */
  readonly writes: string;
  share(fact: Fact, writes: string): void;
  /** A write is over: settles once the others are told, or when Redis is away. */
  wrote(): Promise<void>;
  leave(): void;
}

export interface SharedListingsOptions {
  readonly redis: RedisStore;
  readonly nameOf: CallerNames;
  /** Unique among those that share the Redis. */
  readonly replica: string;
  /** How long a listing is of use to anybody, in milliseconds. */
  readonly keptMs: number;
  readonly clock: Pick<Clock, 'elapsed'>;
  /** Whether Redis works, so that nobody waits for one that does not. */
  works(): boolean;
}

const CHANNEL = 'petql:wrote';
/** How soon a Redis that did not take the word of a write is told again. */
const TELL_AGAIN_MS = 250;
/** How often whoever is served an older answer has a look at what others know. */
const GLANCE_MS = 500;

/**
 * A caller's hash: `writes` names the last write, and each listing is kept with the moment it is as of, by Redis's own
 * clock, so that no two processes' clocks are ever compared. Whoever asks says what it has, and gets what is younger.
 */
const SYNC: RedisScript = {
  name: 'petqlSyncListings',
  source: `${REDIS_NOW}
local nowMs = redisNowMs()
local younger = {}
-- What is as of later than now is from before somebody set the clock back: its age is not known.
for index = 1, #ARGV, 2 do
  local asOfMs = redis.call('HGET', KEYS[1], 'asOf ' .. ARGV[index])
  if asOfMs and tonumber(asOfMs) > tonumber(ARGV[index + 1]) and tonumber(asOfMs) <= nowMs then
    table.insert(younger, { name = ARGV[index], asOfMs = tonumber(asOfMs), text = redis.call('HGET', KEYS[1], ARGV[index]) })
  end
end
return cjson.encode({ nowMs = nowMs, writes = redis.call('HGET', KEYS[1], 'writes') or '', younger = younger })
`,
};

/**
 * Only where no write came in between, and nothing younger is there. The age was right when it was sent, and it may have
 * been long on its way: then what counts is the moment by Redis's clock, as far as the sender knows that.
 */
const SHARE: RedisScript = {
  name: 'petqlShareListing',
  source: `${REDIS_NOW}
local writes, name, ageMs, text, keptMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local latestMs = tonumber(ARGV[6])
if (redis.call('HGET', KEYS[1], 'writes') or '') ~= writes then return 'written' end
local nowMs = redisNowMs()
local asOfMs = math.min(nowMs - ageMs, latestMs)
local keptAsOfMs = tonumber(redis.call('HGET', KEYS[1], 'asOf ' .. name) or '0')
if asOfMs <= keptAsOfMs and keptAsOfMs <= nowMs then return 'known' end
redis.call('HSET', KEYS[1], 'asOf ' .. name, string.format('%.0f', asOfMs), name, text)
redis.call('PEXPIRE', KEYS[1], keptMs)
return string.format('%.0f', asOfMs)
`,
};

/**
 * Some may use the key and not the channel: then it is kept, so that the others find it out when they next ask, and only the
 * word of it is still owed. To keep it again would throw away what was listed since.
 */
const WROTE: RedisScript = {
  name: 'petqlWrote',
  source: `
local writes, keptMs, message, kept = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if kept == '' then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'writes', writes)
  redis.call('PEXPIRE', KEYS[1], keptMs)
end
local heard = redis.pcall('PUBLISH', '${CHANNEL}', message)
if type(heard) == 'table' and heard.err then return 'kept' end
return ''
`,
};

/** A moment that never comes, as Lua has it exactly. */
const LATEST_MS = Number.MAX_SAFE_INTEGER;
/** Longer than any call can be under way. */
const LONGEST_CALL_MS = 660_000;

export function createSharedListings(options: SharedListingsOptions): SharedListings {
  const { redis, nameOf, replica, clock, works } = options;
  const keptMs = String(options.keptMs + LONGEST_CALL_MS);
  const everyone = new Set<Member>();
  /** Those whose names are known, by their names. */
  const members = new Map<string, Member>();
  /** Those that have written, and could not tell the others. */
  const owing = new Map<Member, () => Promise<void>>();
  let telling = false;
  const again = setInterval(() => void tellOwed(), TELL_AGAIN_MS).unref();
  let written = 0;
  /** How far Redis's clock is ahead of ours, at least; unknown until it has answered. */
  let redisAheadMs = Infinity;
  const unsubscribe = redis.subscribe(CHANNEL, {
    onMessage(text) {
      const { name, writes, by } = JSON.parse(text) as { name: string; writes: string; by: string };
      if (by !== replica) members.get(name)?.wrote(writes);
    },
    onGap() {
      for (const member of everyone) member.back();
    },
  });

  return {
    join: createMember,
    close() {
      clearInterval(again);
      unsubscribe();
    },
  };

  /** One after the other, up to the first that Redis does not take. */
  async function tellOwed(): Promise<void> {
    if (telling || owing.size === 0) return;
    telling = true;
    await quietly(async () => {
      for (const tell of owing.values()) await tell();
    });
    telling = false;
  }

  function createMember(apiKey: string, listener: ListingsListener): CallerListings {
    /** As of when each listing is known here, by Redis's clock. */
    const known = new Map<ListingName, number>();
    let writes = '';
    let name: string | undefined;
    /** Counts the writes that were heard of here, whoever made them. */
    let heard = 0;
    /** Of those, the ones that were made here. */
    let ownWrites = 0;
    /** The last of them as it is told, by its count; `kept` once it is in Redis. */
    let told = { count: 0, writes, kept: false };
    /** When the last write was over that was made here or told of, by `clock.elapsed()`. */
    let wroteAtMs = -Infinity;
    let syncing: Promise<void> | undefined;
    let syncedAtMs = -Infinity;
    const member: Member = {
      wrote(others) {
        wroteAtMs = clock.elapsed();
        forget(others);
      },
      back() {
        // What the others said meanwhile is not known. Nor is whether Redis has all that it had.
        forget('');
        told = { ...told, kept: false };
        enrol().catch(() => {});
        void tellOwed();
      },
    };
    everyone.add(member);

    return {
      get writes() {
        return writes;
      },
      sync,
      glance() {
        if (clock.elapsed() - syncedAtMs >= GLANCE_MS) void sync();
      },
      share({ call, shows, complete, asOfMs }, seen) {
        if (call.kind !== 'list') return;
        const text = JSON.stringify({ pets: shows(call.listing), complete } satisfies SharedText);
        void quietly(() => publish({ name: call.listing, text, asOfMs }, seen));
      },
      wrote() {
        heard += 1;
        ownWrites += 1;
        wroteAtMs = clock.elapsed();
        known.clear();
        owing.set(member, tellWrite);
        return quietly(tellWrite);
      },
      leave() {
        everyone.delete(member);
        if (name !== undefined && members.get(name) === member) members.delete(name);
      },
    };

    function forget(lastWrites: string): void {
      heard += 1;
      writes = lastWrites;
      known.clear();
      listener.wrote();
    }

    function sync(): Promise<void> {
      syncedAtMs = clock.elapsed();
      // What others write is heard of from now on, even where Redis does not work at the moment.
      if (name === undefined) enrol().catch(() => {});
      syncing ??= quietly(fetchYounger).finally(() => {
        syncing = undefined;
      });
      return syncing;
    }

    /** The name may change when Redis was emptied and the replicas have agreed on another secret. */
    async function enrol(): Promise<string> {
      const agreed = await nameOf(apiKey);
      if (agreed !== name) {
        if (name !== undefined) members.delete(name);
        name = agreed;
        // One that has left tells what it owes, and hears nothing any more.
        if (everyone.has(member)) members.set(agreed, member);
      }
      return agreed;
    }

    /** Told again, a write keeps its name: under another one, what was listed since would be asked for again. */
    async function tellWrite(): Promise<void> {
      if (told.count !== ownWrites) {
        written += 1;
        told = { count: ownWrites, writes: `${replica} ${written}`, kept: false };
      }
      const last = told;
      if (!last.kept) ({ writes } = last);
      const message = JSON.stringify({ name: await enrol(), writes: last.writes, by: replica });
      const done = await redis.run(WROTE, await hashOf(), last.writes, keptMs, message, last.kept ? 'kept' : '');
      // What was written meanwhile is still to be told, and what Redis may have lost is to be kept again.
      if (told !== last || last.count !== ownWrites) return;
      if (done === 'kept') told = { ...last, kept: true };
      else owing.delete(member);
    }

    async function hashOf(): Promise<string> {
      return `petql:listings:${await enrol()}`;
    }

    async function fetchYounger(): Promise<void> {
      if (owing.has(member)) await tellWrite();
      const have = LISTINGS.flatMap((listing) => [listing, String(known.get(listing) ?? 0)]);
      const hash = await hashOf();
      const before = heard;
      const askedAtMs = clock.elapsed();
      const answer = JSON.parse(await redis.run(SYNC, hash, ...have)) as Younger;
      redisAheadMs = answer.nowMs - clock.elapsed();
      // A write was heard of while Redis's answer was on its way: it may be from before that write, as its listings then are.
      if (heard !== before) return;
      // A write that no message told of, since nobody listened at the time.
      if (answer.writes !== writes) forget(answer.writes);
      for (const { name: listing, asOfMs, text } of Object.values(answer.younger)) {
        const { pets = [], complete } = JSON.parse(text) as SharedText;
        // By when Redis was asked: taken for younger than it is, it would be served with too small an age.
        const fact = listingFact(listing, pets, complete, askedAtMs - (answer.nowMs - asOfMs));
        // A Redis that was restored, or took over from another one, may have forgotten a write and have what was listed before it.
        if (fact.asOfMs < wroteAtMs) continue;
        known.set(listing, asOfMs);
        listener.learn(fact);
      }
    }

    async function publish({ name: listing, text, asOfMs }: Published, seen: string): Promise<void> {
      const key = await hashOf();
      const ageMs = Math.ceil(clock.elapsed() - asOfMs);
      const latestMs = redisAheadMs === Infinity ? LATEST_MS : Math.floor(asOfMs + redisAheadMs);
      const asOf = await redis.run(SHARE, key, seen, listing, String(ageMs), text, keptMs, String(latestMs));
      // A write that was not heard of: what was asked for may be from before it.
      if (asOf === 'written') void sync();
      else if (asOf !== 'known') known.set(listing, Number(asOf));
    }
  }

  /** Each replica keeps what it knows to itself while Redis is away. */
  async function quietly(run: () => Promise<void>): Promise<void> {
    if (!works()) return;
    try {
      await run();
    } catch {
      // The next one finds out whether Redis is back.
    }
  }
}

interface Member {
  wrote(writes: string): void;
  /** Redis is back. */
  back(): void;
}

/** A listing as it is kept. */
interface SharedText {
  readonly pets: readonly Pet[] | undefined;
  readonly complete: boolean;
}

interface Published {
  readonly name: ListingName;
  readonly text: string;
  /** By this process's `clock.elapsed()`. */
  readonly asOfMs: number;
}

interface Younger {
  readonly nowMs: number;
  readonly writes: string;
  /** An empty list comes as an object, since Lua does not tell the two apart. */
  readonly younger: Readonly<
    Record<string, { readonly name: ListingName; readonly asOfMs: number; readonly text: string }>
  >;
}
