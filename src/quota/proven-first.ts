import { LRUCache } from 'lru-cache';
import { maxEntries } from '../common/memory.ts';

interface ProvenFirstOptions<Value> {
  readonly maxProven: number;
  readonly maxUnproven: number;
  readonly isProven: (value: Value) => boolean;
}

/** How both maps expire and dispose of their values. */
type Expiry<Value extends object> = Omit<LRUCache.OptionsTTLLimit<string, Value, unknown>, 'ttlAutopurge'>;

/** A bounded map by API key or its hash. Clients can invent keys, so keys that are not proven evict each other only. */
export class ProvenFirst<Value extends object> {
  /** Each map evicts the least recently used key. */
  readonly #proven: LRUCache<string, Value>;
  readonly #unproven: LRUCache<string, Value>;
  readonly #isProven: (value: Value) => boolean;

  constructor({ maxProven, maxUnproven, isProven }: ProvenFirstOptions<Value>, expiry: Expiry<Value>) {
    this.#proven = new LRUCache<string, Value>({ ...expiry, ...maxEntries(maxProven) });
    this.#unproven = new LRUCache<string, Value>({ ...expiry, ...maxEntries(maxUnproven) });
    this.#isProven = isProven;
  }

  get(apiKey: string): Value | undefined {
    return this.#proven.get(apiKey) ?? this.#unproven.get(apiKey);
  }

  /** Whether the key was not proven when its value was set. */
  hasUnproven(apiKey: string): boolean {
    return this.#unproven.has(apiKey);
  }

  /**
   * Set it again once its key is proven.
   *
   * @param ttlMs default: that of all values.
   */
  set(apiKey: string, value: Value, ttlMs?: number): void {
    const isProven = this.#isProven(value);
    if (isProven) this.#unproven.delete(apiKey);
    (isProven ? this.#proven : this.#unproven).set(apiKey, value, ttlMs === undefined ? {} : { ttl: ttlMs });
  }

  /** Those of proven keys first, the last used key first. */
  entries(): [apiKey: string, value: Value][] {
    return [...this.#proven.entries(), ...this.#unproven.entries()];
  }

  /** Evicts the values that have expired. */
  purgeStale(): void {
    this.#proven.purgeStale();
    this.#unproven.purgeStale();
  }
}
