import { createHmac, randomBytes } from 'node:crypto';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import type { RedisScript, RedisStore } from '../store/redis.ts';

/** What a caller is called wherever something is kept: a keyed hash, which tells nothing of the API key. */
export type CallerNames = (apiKey: string) => Promise<string> | string;

/** @param secret the same for all that share what is kept. */
export function createCallerNames(secret: string): (apiKey: string) => string {
  return (apiKey) => createHmac('sha256', secret).update(apiKey).digest('base64url').slice(0, 32);
}

/** A secret for a deployment that was given none. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

const AGREE: RedisScript = {
  name: 'petqlKeySecret',
  source: `
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
`,
};

/** How long an agreement is taken for granted. */
const AGREED_FOR_MS = 1_000;

/**
 * With the secret that the replicas have agreed on in Redis: the first of them makes it. They agree again once a second, at
 * nobody's cost: in a Redis that was emptied, a replica that starts would make another one, and count for itself. On a new
 * connection, which may lead to such a Redis, nobody has a name before they have.
 */
export function createSharedCallerNames(
  redis: RedisStore,
  { elapsed }: Pick<Clock, 'elapsed'> = systemClock,
): CallerNames {
  let agreed: { readonly secret: string; readonly nameOf: (apiKey: string) => string } | undefined;
  let askedAtMs = 0;
  let connection: number | undefined;
  return async (apiKey) => {
    if (connection !== redis.connections) await agree();
    // Of a Redis that is away, the exchange itself finds out.
    if (agreed && elapsed() - askedAtMs >= AGREED_FOR_MS) agree().catch(() => {});
    const { nameOf } = agreed ?? (await agree());
    return nameOf(apiKey);
  };

  async function agree() {
    askedAtMs = elapsed();
    const asked = redis.connections;
    const secret = await redis.run(AGREE, 'petql:key-secret', agreed?.secret ?? newSecret());
    // Where it was asked on the way from one connection to the next, the next call asks again.
    connection = asked;
    if (secret !== agreed?.secret) agreed = { secret, nameOf: createCallerNames(secret) };
    return agreed;
  }
}
