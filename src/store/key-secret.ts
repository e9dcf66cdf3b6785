import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Log } from '../log.ts';
import { StoreUnavailableError } from './store.ts';
import type { Store } from './store.ts';

/** Names API keys by a keyed hash. */
export type NameOf = (apiKey: string) => Promise<string>;

/** The document: a secret that petql made, or the fingerprint of one that was given. */
interface Kept {
  readonly secret?: string;
  readonly fingerprint: string;
}

const MAX_NAMES = 1_000;
const TEN_YEARS_MS = 315_360_000_000;

/**
 * Makes the secret that all processes on one store share: the given one, else one that the first process makes.
 *
 * @param log gets one line when the store has another secret.
 */
export function createKeySecret(store: Store, given: string | undefined, log: Log) {
  let secret = given ?? randomBytes(32).toString('base64url');
  const names = new LRUCache<string, string>({ max: MAX_NAMES, memoMethod: (apiKey) => hash(secret, apiKey) });
  let isChecked = false;
  let isLogged = false;
  void check().catch(() => {});
  return {
    /**
     * @throws Error where the store has another secret: the quota would be used twice.
     * @throws StoreUnavailableError while the store was never available and no secret was given.
     */
    async nameOf(apiKey: string): Promise<string> {
      if (!isChecked) {
        await check().catch((error: unknown) => {
          if (given === undefined || !(error instanceof StoreUnavailableError)) throw error;
        });
      }
      return names.memo(apiKey);
    },
    check,
  };

  /**
   * Stores the secret, before a starting process makes another after a loss of data. Call it with each heartbeat.
   *
   * @throws Error with what to do, where the store has another secret.
   * @throws StoreUnavailableError
   */
  async function check(): Promise<void> {
    // The name of an API key that cannot exist, since it has spaces: it differs from secret to secret.
    const fingerprint = hash(secret, 'nobody has this key');
    const offered: Kept = given === undefined ? { secret, fingerprint } : { fingerprint };
    const kept = await store.update('key-secret', (found) => ({
      text: found ?? JSON.stringify(offered),
      ttlMs: TEN_YEARS_MS,
      result: found === undefined ? offered : (JSON.parse(found) as Kept),
    }));
    if (given === undefined ? kept.secret === undefined : kept.fingerprint !== fingerprint) {
      const which = kept.secret === undefined ? 'a given one' : 'made by petql';
      const problem = `the store has another key secret, ${which}; start with that one, or rotate it as README.md says`;
      if (!isLogged) log.error({}, problem);
      isLogged = true;
      throw new Error(problem);
    }
    isChecked = true;
    if (kept.secret === undefined || kept.secret === secret) return;
    secret = kept.secret;
    names.clear();
  }
}

function hash(secret: string, apiKey: string): string {
  return createHmac('sha256', secret).update(apiKey).digest('base64url').slice(0, 32);
}
