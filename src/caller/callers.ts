import { setImmediate } from 'node:timers/promises';
import type { PetqlError } from '../common/errors.ts';
import { entriesFor } from '../common/memory.ts';
import { ProvenFirst } from '../quota/proven-first.ts';
import { Caller } from './caller.ts';
import type { SharedParts } from './caller.ts';
import type { KeyReport } from './key-report.ts';
import type { QuotaView } from './quota.ts';
import {
  MIN_CALLER_IDLE_MS,
  PURGE_CALLERS_EVERY_MS,
  RELEASE_CALLERS_EVERY_MS,
  USED_CALLER_IDLE_MS,
} from '../common/times.ts';

/** A caller that has called, without its snapshots: 12 KB, half as much for what it has under way, and its account twice. */
const CALLER_BYTES = 23_000;
/** So many more are kept while Redis is unavailable. */
const MAX_OFFLINE = entriesFor('offlineCallers', CALLER_BYTES);
const QUOTAS_AT_A_TIME = 100;
const MAX_REPORTS = 100;

/**
 * The callers of a gateway, by their API keys. Anybody can make up keys: until the upstream has accepted a key, its caller is
 * provisional, and evicts provisional ones only.
 */
export class Callers {
  readonly #shared: SharedParts;
  readonly #callers: ProvenFirst<Caller>;
  /**
   * Evicted while they are in use: a second caller of the key would not see the writes of the first, nor what it used while Redis is
   * unavailable.
   */
  readonly #evicted = new Map<string, Caller>();
  readonly #keptForADay = new WeakSet<Caller>();
  readonly #purging: NodeJS.Timeout;
  /** Runs while evicted callers are in use. */
  #releasing: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(shared: SharedParts) {
    this.#shared = shared;
    this.#callers = this.#createCache();
    this.#purging = setInterval(() => this.#callers.purgeStale(), PURGE_CALLERS_EVERY_MS).unref();
    shared.replicas.onBeat((hasLostBeats) => {
      void this.writeBack();
      // It may have lost accounts too.
      if (hasLostBeats) this.#restore().catch(() => {});
    });
  }

  /** Returns the error of an API key that the upstream rejected a short while ago, or undefined. */
  keyError(apiKey: string): PetqlError | undefined {
    return this.#shared.rejectedKeys.error(apiKey);
  }

  /** Returns the hash of an API key, for the log. */
  nameOf(apiKey: string): string {
    return this.#shared.nameOf(apiKey);
  }

  /** Returns the caller with this API key if there is one. */
  find(apiKey: string): Caller | undefined {
    return this.#callers.get(apiKey) ?? this.#evicted.get(apiKey);
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
    const isPromoted = this.#callers.hasUnproven(apiKey) && caller.account.isProven;
    const isKept = caller.isKeptForADay && !this.#keptForADay.has(caller);
    if (isPromoted) this.#shared.idempotency.records.recordProven(apiKey);
    if (isPromoted || this.#evicted.delete(apiKey) || isKept) this.#keep(caller);
  }

  /** Yields those that have called, the latest first. Other work goes on in between: thousands of them take a while. */
  async *quotas(): AsyncGenerator<readonly [caller: Caller, quota: QuotaView]> {
    for (const [index, caller] of this.#all().entries()) {
      if (index % QUOTAS_AT_A_TIME === QUOTAS_AT_A_TIME - 1) await setImmediate();
      const quota = caller.quota();
      if (quota) yield [caller, quota];
    }
  }

  /** Returns what operators see of the keys that called last, and how many more there are. */
  async report(): Promise<{ readonly keys: readonly KeyReport[]; readonly more: number }> {
    const keys: KeyReport[] = [];
    let more = 0;
    for await (const [caller, quota] of this.quotas()) {
      if (keys.length < MAX_REPORTS) keys.push(caller.report(quota));
      else more += 1;
    }
    return { keys, more };
  }

  /** How many keys are paused after a 429. */
  get pausedKeys(): number {
    return this.#all().filter(({ account }) => account.isPaused).length;
  }

  /** Writes to the store what was used while it was unavailable. Never rejects: what it does not take is kept. */
  async writeBack(): Promise<void> {
    await Promise.allSettled([...this.#shared.offline].map((account) => account.writeBack()));
  }

  /** Refuses waiting and new calls, and settles once the calls in flight are over and stored. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#purging);
    clearTimeout(this.#releasing);
    await Promise.all(this.#all().map((caller) => caller.close()));
  }

  #createCache(): ProvenFirst<Caller> {
    const { clock, idleMs } = this.#shared;
    const sizes = {
      maxProven: entriesFor('callers', CALLER_BYTES),
      maxUnproven: entriesFor('provisionalCallers', CALLER_BYTES),
      isProven: ({ account }: Caller) => account.isProven,
    };
    return new ProvenFirst<Caller>(sizes, {
      ttl: Math.max(idleMs, MIN_CALLER_IDLE_MS),
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
    const isKept = caller.isKeptForADay;
    if (isKept) this.#keptForADay.add(caller);
    this.#callers.set(caller.apiKey, caller, isKept ? USED_CALLER_IDLE_MS : undefined);
  }

  /** Frees an evicted caller once it is not in use any more. */
  #release(caller: Caller): void {
    if (caller.isInUse || this.#hasToWriteBack(caller)) return;
    this.#evicted.delete(caller.apiKey);
    this.#shared.offline.delete(caller.account);
    caller.free();
  }

  /** Anybody can make up keys: what those have used is forgotten. */
  #hasToWriteBack({ account }: Caller): boolean {
    return account.isProven && this.#shared.offline.has(account) && this.#evicted.size <= MAX_OFFLINE;
  }

  /** Restores all accounts after Redis lost its data, the last used key first. @throws StoreUnavailableError */
  async #restore(): Promise<void> {
    for (const { account } of this.#all()) await account.restore();
  }

  /** Looks each second while an evicted caller is in use: its calls may go on after their operation was aborted. */
  #releaseLater(): void {
    if (this.#evicted.size === 0) return;
    this.#releasing ??= setTimeout(() => {
      this.#releasing = undefined;
      for (const caller of this.#evicted.values()) this.#release(caller);
      this.#releaseLater();
    }, RELEASE_CALLERS_EVERY_MS).unref();
  }

  #all(): Caller[] {
    return [...this.#callers.entries().map(([, caller]) => caller), ...this.#evicted.values()];
  }
}
