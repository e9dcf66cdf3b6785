import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { silentLog } from '../log.ts';
import type { Log } from '../log.ts';
import type { FileStore } from './file-store.ts';
import { KEY_PREFIX } from './redis-store.ts';
import { StoreUnavailableError } from './store.ts';
import type { Change, Store } from './store.ts';

/** Names API keys by a keyed hash. */
export type NameOf = (apiKey: string) => Promise<string> | string;

export interface SharedKeySecret {
  /** @throws StoreUnavailableError while Redis was never available and no secret was given. */
  readonly nameOf: NameOf;
  /**
   * Stores the secret in Redis, before a starting process makes another after a loss of data. Call it at the start and with
   * each heartbeat.
   *
   * @throws Error with what to do, where Redis has another secret.
   * @throws StoreUnavailableError
   */
  check(): Promise<void>;
}

/** The document: a secret that petql made, or the fingerprint of one that was given. */
interface Kept {
  readonly secret?: string;
  readonly fingerprint: string;
}

const MAX_NAMES = 1_000;
const DOCUMENT = 'key-secret';
const TEN_YEARS_MS = 315_360_000_000;
const FORGOTTEN = 'the quota used today and all idempotency records would be forgotten';

const ALTERNATIVE = {
  Redis: `stop all processes and delete ${KEY_PREFIX}${DOCUMENT} there`,
  'the file': 'name another file',
} as const;

export function createNameOf(secret: string): (apiKey: string) => string {
  const names = new LRUCache<string, string>({
    max: MAX_NAMES,
    memoMethod: (apiKey) => createHmac('sha256', secret).update(apiKey).digest('base64url').slice(0, 32),
  });
  return (apiKey) => names.memo(apiKey);
}

export function createSecret(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Makes the secret that all processes on one Redis share: the given one, else one that the first process makes.
 *
 * @param log gets one line when another secret is found. Default: none.
 */
export function createSharedKeySecret(store: Store, given?: string, log: Log = silentLog): SharedKeySecret {
  let secret = given ?? createSecret();
  let nameOf = given === undefined ? undefined : createNameOf(given);
  let isLogged = false;
  return {
    async nameOf(apiKey) {
      if (!nameOf) await check();
      return (nameOf ?? createNameOf(secret))(apiKey);
    },
    check,
  };

  async function check(): Promise<void> {
    const kept = await store.update(DOCUMENT, offer(secret, given !== undefined));
    const reason = mismatch(kept, given, 'Redis');
    if (reason) {
      if (!isLogged)
        log.error({ reason }, 'Redis has another key secret: this process uses the whole plan beside the others');
      isLogged = true;
      throw new Error(reason);
    }
    if (kept.secret !== undefined) secret = kept.secret;
    nameOf = createNameOf(secret);
  }
}

/**
 * Returns the secret of a file: the given one, else one that is made with the file.
 *
 * @throws Error with what to do, where the file has another secret.
 */
export function secretOfFile(file: FileStore, given?: string): string {
  const secret = given ?? createSecret();
  try {
    const kept = file.updateNow(DOCUMENT, offer(secret, given !== undefined));
    const reason = mismatch(kept, given, 'the file');
    if (reason) throw new Error(reason);
    return kept.secret ?? secret;
  } catch (error) {
    // The disk is full. The next start checks.
    if (given !== undefined && error instanceof StoreUnavailableError) return given;
    throw error;
  }
}

/** Stores the secret, or the fingerprint of a given one, if none is stored. Returns what is stored. */
function offer(secret: string, isGiven: boolean): Change<Kept> {
  const offered: Kept = { ...(isGiven ? {} : { secret }), fingerprint: fingerprintOf(secret) };
  return (found) => ({
    text: found ?? JSON.stringify(offered),
    ttlMs: TEN_YEARS_MS,
    result: found === undefined ? offered : (JSON.parse(found) as Kept),
  });
}

/** Returns how the stored secret differs from the given one and what to do; undefined if it does not. */
function mismatch(kept: Kept, given: string | undefined, place: keyof typeof ALTERNATIVE): string | undefined {
  const isMade = kept.secret !== undefined;
  if (given === undefined ? isMade : kept.fingerprint === fingerprintOf(given)) return undefined;
  const madeHint = isMade ? ', or none: petql made it' : '';
  return given === undefined
    ? `it needs its key secret, and none is given; ${FORGOTTEN}. Give it, or ${ALTERNATIVE[place]}`
    : `it has another key secret than the given one; ${FORGOTTEN}. Give that one${madeHint}, or ${ALTERNATIVE[place]}`;
}

/** Returns the name of an API key that cannot exist, since it has spaces: it differs from secret to secret. */
function fingerprintOf(secret: string): string {
  return createNameOf(secret)('nobody has this key');
}
