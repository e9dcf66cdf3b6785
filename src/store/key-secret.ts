import { SettingError } from '../common/errors.ts';
import type { Log } from '../common/log.ts';
import { fingerprintOf } from './names.ts';
import type { Store } from './store.ts';
import { SECRET_LIVES_MS } from '../common/times.ts';

/** It stays through upgrades: a test holds it to the format. */
const SECRET_NAME = 'key-secret:2';

export interface KeySecret {
  /** The store, whose updates fail where it has another key secret. */
  readonly store: Store;
  /**
   * @throws SettingError with what to do, where the store has another key secret: the quota would be used twice.
   * @throws StoreUnavailableError
   */
  readonly check: () => Promise<void>;
}

/**
 * Checks once, before the first update of a store, that all its documents are named with this key secret. The store keeps its
 * fingerprint.
 *
 * @param log gets one line where the store has another key secret.
 */
export function withKeySecret(store: Store, secret: string | undefined, log: Log): KeySecret {
  const fingerprint = fingerprintOf(secret);
  let checked: Promise<void> | undefined;
  let isRight = false;
  const check = () => (checked ??= compare());
  return {
    store: {
      update: (...args) => (isRight ? store.update(...args) : check().then(() => store.update(...args))),
      nowMs: () => store.nowMs(),
      close: () => store.close(),
    },
    check,
  };

  async function compare(): Promise<void> {
    const found = await store
      .update(SECRET_NAME, (text = fingerprint) => ({ text, ttlMs: SECRET_LIVES_MS, result: text }))
      .catch((error: unknown) => {
        checked = undefined;
        throw error;
      });
    isRight = found === fingerprint;
    if (isRight) return;
    log.error({}, OTHER_SECRET);
    throw new SettingError('keySecret', (name) => `${name}: ${OTHER_SECRET}`);
  }
}

const OTHER_SECRET =
  'the store has another key secret; start with that one, or rotate it as src/program/README.md says';
