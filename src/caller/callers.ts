import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { PetqlError } from '../errors.ts';
import { heapShare } from '../heap.ts';
import { maxEntries } from '../max-entries.ts';
import { GetRoute } from '../reads/get-route.ts';
import { createRetryBudget } from '../reads/retry-budget.ts';
import { SnapshotMemory } from '../reads/cache/snapshot-memory.ts';
import { RejectedKeys } from './rejected-keys.ts';
import { Caller } from './caller.ts';
import type { CallerView } from './caller.ts';
import type { CallersOptions, SharedParts } from './pet-access.ts';

/** Wins over a smaller `idleMs`. */
const MIN_IDLE_MS = 900_000;
/** A caller that is evicted forgets the calls of its visitors, which count so long. */
const VISITORS_IDLE_MS = 86_400_000;
/** A caller that has called, without its snapshots: 12 KB, and half as much for what it has under way. */
const CALLER_BYTES = 18_000;
const HEAP_SHARE = 0.2;
const MAX_CALLERS = 10_000;
/** Provisional callers for each other one. */
const PROVISIONAL_SHARE = 0.1;
const PURGE_EVERY_MS = 60_000;
const RELEASE_EVERY_MS = 1_000;
const VIEWS_AT_A_TIME = 100;

/**
 * The callers of a gateway, by their API keys. Anybody can make up keys: until the upstream has accepted a key, its caller is
 * provisional, and evicts provisional ones only.
 */
export class Callers {
  readonly getRoute: GetRoute;
  readonly #shared: SharedParts;
  /** Callers of proven keys, and the others; the least recently used goes first. */
  readonly #proven: LRUCache<string, Caller>;
  readonly #provisional: LRUCache<string, Caller>;
  /** Evicted while they are in use: a second caller of the key would not see the writes of the first. */
  readonly #evicted = new Map<string, Caller>();
  readonly #purging: NodeJS.Timeout;
  /** Runs while evicted callers are in use. */
  #releasing: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(options: CallersOptions) {
    const { clock, log, nameOf } = options;
    this.getRoute = new GetRoute(clock, log);
    this.#shared = {
      ...options,
      getRoute: this.getRoute,
      retryBudget: createRetryBudget(),
      memory: new SnapshotMemory(),
      rejectedKeys: new RejectedKeys(clock, nameOf),
    };

    const max = Math.floor(heapShare(HEAP_SHARE, MAX_CALLERS * CALLER_BYTES) / CALLER_BYTES);
    this.#proven = this.#createCache(max);
    this.#provisional = this.#createCache(Math.floor(max * PROVISIONAL_SHARE));
    this.#purging = setInterval(() => this.#purge(), PURGE_EVERY_MS).unref();
  }

  /** Returns the error of an API key that the upstream rejected a short while ago, or undefined. */
  keyError(apiKey: string): PetqlError | undefined {
    return this.#shared.rejectedKeys.error(apiKey);
  }

  /** Returns the caller with this API key if there is one. */
  find(apiKey: string): Caller | undefined {
    return this.#proven.get(apiKey) ?? this.#provisional.get(apiKey) ?? this.#evicted.get(apiKey);
  }

  /** Returns the caller with this API key for one operation; the same one for the same key. Its `end` follows. */
  begin(apiKey: string): Caller {
    const known = this.find(apiKey);
    const caller = known ?? new Caller(apiKey, this.#shared);
    caller.begin();
    if (!known || this.#evicted.delete(apiKey)) this.#keep(caller);
    if (!known && this.#isClosing) void caller.close();
    return caller;
  }

  /** Ends the use of a caller by one operation. */
  end(caller: Caller): void {
    const { apiKey } = caller;
    caller.end();
    const isPromoted = this.#provisional.has(apiKey) && this.#isProven(apiKey);
    if (isPromoted || this.#evicted.delete(apiKey) || caller.hasVisitors) this.#keep(caller);
  }

  /** Yields those that have called, the latest first. Other work goes on in between: thousands of them take a while. */
  async *views(): AsyncGenerator<CallerView> {
    for (const [index, caller] of this.#all().entries()) {
      if (index % VIEWS_AT_A_TIME === VIEWS_AT_A_TIME - 1) await setImmediate();
      const view = caller.view();
      if (view) yield view;
    }
  }

  /** Refuses waiting and new calls, and settles once the calls in flight are over and stored. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#purging);
    clearTimeout(this.#releasing);
    await Promise.all(this.#all().map((caller) => caller.close()));
  }

  #createCache(maxCallers: number): LRUCache<string, Caller> {
    const { clock, idleMs } = this.#shared;
    return new LRUCache<string, Caller>({
      ...maxEntries(maxCallers),
      ttl: Math.max(idleMs, MIN_IDLE_MS),
      updateAgeOnGet: true,
      ttlResolution: 0,
      perf: { now: clock.elapsed },
      disposeAfter: (caller, apiKey, reason) => {
        if (reason !== 'evict' && reason !== 'expire') return;
        this.#evicted.set(apiKey, caller);
        this.#release(caller);
        this.#releaseLater();
      },
    });
  }

  #keep(caller: Caller): void {
    const { apiKey } = caller;
    if (!this.#isProven(apiKey)) {
      this.#provisional.set(apiKey, caller);
      return;
    }

    this.#provisional.delete(apiKey);
    this.#proven.set(apiKey, caller, caller.hasVisitors ? { ttl: VISITORS_IDLE_MS } : {});
  }

  #isProven(apiKey: string): boolean {
    return this.#shared.accounts.isProven(apiKey);
  }

  #purge(): void {
    this.#proven.purgeStale();
    this.#provisional.purgeStale();
  }

  /** Frees an evicted caller once it is not in use any more. */
  #release(caller: Caller): void {
    if (caller.isInUse) return;
    this.#evicted.delete(caller.apiKey);
    caller.free();
  }

  /** Looks each second while an evicted caller is in use: its calls may go on after their operation was aborted. */
  #releaseLater(): void {
    if (this.#evicted.size === 0) return;
    this.#releasing ??= setTimeout(() => {
      this.#releasing = undefined;
      for (const caller of this.#evicted.values()) this.#release(caller);
      this.#releaseLater();
    }, RELEASE_EVERY_MS).unref();
  }

  #all(): Caller[] {
    return [...this.#proven.values(), ...this.#provisional.values(), ...this.#evicted.values()];
  }
}
