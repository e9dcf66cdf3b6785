import { LRUCache } from 'lru-cache';
import { heapShare } from '../heap.ts';
import { maxEntries } from '../max-entries.ts';
import type { Account } from './account/format.ts';

interface HasAccount {
  readonly account: Pick<Account, 'isProven'>;
}

const MAX_PROVEN = 20_000;
const HEAP_SHARE = 0.05;
/** Memory of an account and its text. */
const ACCOUNT_BYTES = 2_500;
const MAX_UNPROVEN = 1_000;

/** A bounded map by API key. Clients can invent keys, so keys that are not proven evict each other only. */
export class ProvenFirst<Value extends HasAccount> {
  /** Each map evicts the least recently used key. */
  readonly #proven = new LRUCache<string, Value>(
    maxEntries(Math.floor(heapShare(HEAP_SHARE, MAX_PROVEN * ACCOUNT_BYTES) / ACCOUNT_BYTES)),
  );
  readonly #unproven = new LRUCache<string, Value>(maxEntries(MAX_UNPROVEN));

  get(apiKey: string): Value | undefined {
    return this.#proven.get(apiKey) ?? this.#unproven.get(apiKey);
  }

  /** Set it again once its account is proven. */
  set(apiKey: string, value: Value): void {
    const { isProven } = value.account;
    if (isProven) this.#unproven.delete(apiKey);
    (isProven ? this.#proven : this.#unproven).set(apiKey, value);
  }

  delete(apiKey: string): void {
    this.#proven.delete(apiKey);
    this.#unproven.delete(apiKey);
  }

  /** Returns how many values meet the condition. */
  count(isCounted: (value: Value, apiKey: string) => boolean): number {
    let count = 0;
    for (const map of [this.#proven, this.#unproven]) {
      map.forEach((value, apiKey) => (count += isCounted(value, apiKey) ? 1 : 0));
    }
    return count;
  }

  /** Those of proven keys first, the last used key first. */
  entries(): [apiKey: string, value: Value][] {
    return [...this.#proven.entries(), ...this.#unproven.entries()];
  }
}
