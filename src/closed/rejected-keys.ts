import { LRUCache } from 'lru-cache';
import type { Clock } from '../common/clock.ts';
import { PetqlError, retryIn } from '../common/errors.ts';
import { entriesFor, maxEntries } from '../common/memory.ts';
import type { NameOf } from '../store/names.ts';
import { MAX_REJECTION_MS } from '../common/call-times.ts';

interface RejectedKey {
  /** By `clock.elapsed()`. */
  readonly untilMs: number;
  /** How long the next rejection lasts. */
  readonly nextMs: number;
}

/** A rejection with the hash of its key. */
const REJECTION_BYTES = 250;

/** A negative cache of 401: a client with a rejected key must not hammer the upstream. Made-up keys evict each other. */
export class RejectedKeys {
  readonly #elapsed: Clock['elapsed'];
  readonly #now: Clock['now'];
  readonly #nameOf: NameOf;
  /** By the hash of the key. */
  readonly #rejections = new LRUCache<string, RejectedKey>(maxEntries(entriesFor('rejectedKeys', REJECTION_BYTES)));

  constructor({ elapsed, now }: Clock, nameOf: NameOf) {
    this.#elapsed = elapsed;
    this.#now = now;
    this.#nameOf = nameOf;
  }

  /** Returns the error of every read and write while the key is rejected without a call; undefined when it may be tried. */
  error(apiKey: string): PetqlError | undefined {
    if (this.#rejections.size === 0) return undefined;
    const remainingMs = (this.#rejections.get(this.#nameOf(apiKey))?.untilMs ?? 0) - this.#elapsed();
    if (remainingMs <= 0) return undefined;
    return new PetqlError(
      'UNAUTHENTICATED',
      `The pet API does not accept this API key. Check the key; petql tries it again in ${Math.ceil(remainingMs / 1000)} s.`,
      {
        details: retryIn(Math.ceil(remainingMs), this.#now()),
        httpStatus: 401,
        httpHeaders: { 'www-authenticate': 'Bearer error="invalid_token"' },
      },
    );
  }

  /**
   * Rejects a key after a 401: no call for a while, doubled at each further rejection up to 10 minutes.
   *
   * @param firstMs how long the first rejection lasts.
   */
  reject(apiKey: string, firstMs: number): void {
    const name = this.#nameOf(apiKey);
    const { untilMs, nextMs } = this.#rejections.get(name) ?? { untilMs: -Infinity, nextMs: firstMs };
    // Rejections of concurrent calls count as one.
    if (this.#elapsed() < untilMs) return;
    this.#rejections.set(name, { untilMs: this.#elapsed() + nextMs, nextMs: Math.min(nextMs * 2, MAX_REJECTION_MS) });
  }

  /** The upstream accepted the key. */
  accept(apiKey: string): void {
    if (this.#rejections.size > 0) this.#rejections.delete(this.#nameOf(apiKey));
  }
}
