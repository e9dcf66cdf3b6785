import { silentLog } from '../log.ts';
import type { Log } from '../log.ts';
import type { RedisScript, RedisStore } from '../store/redis.ts';
import type { CallerNames } from './caller-names.ts';
import { secretFingerprint } from './secret-fingerprint.ts';

/**
 * Whether all that share a Redis hash API keys with one secret. Under another one a caller has another name: each secret
 * spends the whole plan, and an idempotency key holds under its own alone.
 */
export interface SecretWatch {
  /** Whether another secret was in use in the last ten seconds, as far as is known. */
  readonly differs: boolean;
  close(): void;
}

const LOOK_MS = 2_000;
/** As long as a replica that is gone is counted. */
const IN_USE_S = 10;

/** Secrets that are agreed on may differ until all have agreed again. */
const ENOUGH_SIGHTINGS = 2;

/** Takes the fingerprint, and the one before where that was another. Redis tells how many seconds ago another secret was last in use, for a day; or nothing. */
const SECRETS: RedisScript = {
  name: 'petqlKeySecrets',
  source: `
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[2])
-- Of later ones somebody has set the clock back since; those in use come again.
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + 1, '+inf')
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 86400)
redis.call('EXPIRE', KEYS[1], 86400)
local latest = redis.call('ZREVRANGE', KEYS[1], 0, 1, 'WITHSCORES')
for index = 1, #latest, 2 do
  if latest[index] ~= ARGV[1] then return tostring(now - tonumber(latest[index + 1])) end
end
return ''
`,
};

/**
 * @param log hears once when another secret is in use, and once when it is not any more; and, of a process that starts, that
 *   another one was within the last day. Default: nobody.
 */
export function createSecretWatch(redis: RedisStore, nameOf: CallerNames, log: Log = silentLog): SecretWatch {
  let differs = false;
  let sightings = 0;
  let latest = '';
  let looked = false;
  let closed = false;
  const timer = setInterval(look, LOOK_MS).unref();
  look();
  return {
    get differs() {
      return differs;
    },
    close() {
      closed = true;
      clearInterval(timer);
    },
  };

  function look(): void {
    // Of a Redis that is away, the heartbeats tell.
    ask().then(note, () => {});
  }

  async function ask(): Promise<string> {
    const fingerprint = await secretFingerprint(nameOf);
    const before = fingerprint === latest ? '' : latest;
    const otherAgoS = await redis.run(SECRETS, 'petql:key-secrets', fingerprint, before);
    latest = fingerprint;
    return otherAgoS;
  }

  function note(otherAgoS: string): void {
    if (closed) return;
    const seen = otherAgoS !== '' && Number(otherAgoS) <= IN_USE_S;
    sightings = seen ? sightings + 1 : 0;
    const inUse = seen && (differs || sightings >= ENOUGH_SIGHTINGS);
    if (inUse && !differs) {
      log.warn(
        {},
        'another key secret is in use with this Redis: each secret spends the whole plan, and knows of no creations of the ' +
          'other; give all processes the same one',
      );
    } else if (!inUse && differs) {
      log.info({}, 'no other key secret is in use with this Redis any more');
    } else if (!seen && otherAgoS !== '' && !looked) {
      log.warn(
        { lastUsedSecondsAgo: Number(otherAgoS) },
        'another key secret was in use with this Redis within the last day: what was spent and created under it is not known',
      );
    }
    differs = inUse;
    looked = true;
  }
}
