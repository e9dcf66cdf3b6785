import { createHmac, randomBytes } from 'node:crypto';
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

/** With the secret that the replicas have agreed on in Redis: the first of them makes it. */
export function createSharedCallerNames(redis: RedisStore): CallerNames {
  let agreed: ((apiKey: string) => string) | undefined;
  return async (apiKey) => {
    agreed ??= createCallerNames(await redis.run(AGREE, 'petql:key-secret', newSecret()));
    return agreed(apiKey);
  };
}
