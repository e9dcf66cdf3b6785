import type { CallerRequest, Freshness } from '../common/caller-request.ts';
import type { FailedCalls } from './failed-calls.ts';
import { notCachedError } from './cache/freshness.ts';
import type { PetCache } from './cache/pet-cache.ts';
import { isList } from '../pets/read-key.ts';
import type { CallKey, ListName, ReadKey } from '../pets/read-key.ts';
import { PendingReads } from './pending-reads.ts';
import type { ReadParts } from './pending-reads.ts';
import { WantedCalls } from './wanted-calls.ts';
import type { StaleReason } from '../common/usage.ts';
import type { ReadResult, ServedResult } from './read-waiter.ts';
import { CallerLists } from './cache/caller-lists.ts';
import type { SharedLists } from './cache/shared-lists.ts';

type Results = Map<ReadKey, ReadResult>;

/** All reads of one caller: the cache serves what it can, the rest waits together for as few calls as possible. */
export class PetReads {
  readonly #cache: PetCache;
  readonly #failedCalls: FailedCalls;
  readonly #pending: PendingReads;
  /** Undefined without Redis. */
  readonly #lists: CallerLists | undefined;
  /** What they want of the line of calls. */
  readonly line: WantedCalls;

  constructor(parts: ReadParts, shared: SharedLists | undefined) {
    const { cache, failedCalls, quota } = parts;
    this.#cache = cache;
    this.#failedCalls = failedCalls;
    this.#pending = new PendingReads(parts);
    this.#lists = shared && new CallerLists(shared, quota.apiKey, cache, this.#pending);
    this.line = new WantedCalls(parts, this.#pending, this.#lists);
  }

  /** Reads a batch of different keys of one request; with an error in the place of each read that fails. */
  async load(keys: readonly ReadKey[], request: CallerRequest): Promise<ReadResult[]> {
    const { freshness } = request;
    // 1. Another replica may have written, or called for these: a look at Redis costs no call.
    const looking = this.#lists?.catchUp();
    if (looking) await looking;

    // 2. The cache serves what it can, and also stale entries that another replica refreshes.
    let results = this.#serve(keys, request);
    const lists = this.#listsToClaim(keys, freshness, results);
    if (this.#lists && lists.length > 0) {
      await this.#lists.claimRefresh(lists);
      // Another replica may have claimed them first.
      results = this.#serve(keys, request);
    }

    // 3. The rest waits for calls.
    const left = keys.filter((key) => !results.has(key));
    if (left.length > 0 && freshness.mayCall) {
      const added = await this.#pending.add(left, request);
      for (const [index, result] of added.entries()) results.set(left[index] as ReadKey, result);
    }
    return keys.map((key) => results.get(key) ?? notCachedError());
  }

  /**
   * Returns what `load` would serve from the cache at this moment; undefined where it would call or wait. Looks at Redis in the
   * background, and spends, counts and logs nothing. What it finds is the very same object as before while nothing about it has
   * changed.
   */
  peek(key: ReadKey, request: CallerRequest): ServedResult | undefined {
    this.#lists?.keepUp();
    return this.#lists?.isBlind ? undefined : this.#fromCache(key, request, () => 0);
  }

  /** Returns the minimum time until a stale entry may be refreshed for a request. */
  refreshWaitMs(stale: { readonly key: ReadKey; readonly asOfMs: number }, request: CallerRequest): number {
    return this.line.refreshWaitMs(stale, request);
  }

  /** Returns the maximum of calls that these reads can cost now, retries aside. */
  maxCalls(keys: readonly ReadKey[], freshness: Freshness): number {
    return freshness.mayCall ? this.#pending.maxCalls(keys, freshness) : 0;
  }

  /**
   * Raises the generation of the cache, since a write may have changed the store. The promise settles once the other
   * replicas can see that.
   *
   * @param isCertain whether it surely has.
   * @param isShared whether they hear of it: the announcement is stored, and none has lists of a made-up key.
   */
  invalidate({ isCertain, isShared }: { isCertain: boolean; isShared: boolean }): Promise<void> | undefined {
    this.#cache.invalidate(isCertain);
    return isShared ? this.#lists?.announce(isCertain) : undefined;
  }

  /** Frees what the caller holds, after its eviction. */
  free(): void {
    this.#lists?.free();
    this.#failedCalls.free();
    this.#cache.clear();
  }

  /** Ends the wait for further tries of calls that failed. */
  close(): void {
    this.line.close();
  }

  /** Returns the results that need no call: cached entries, and the errors of calls that failed and are not tried again yet. */
  #serve(keys: readonly ReadKey[], request: CallerRequest): Results {
    const results: Results = new Map();
    const callsAhead = new Set<CallKey>();
    const uncounted: ReadKey[] = [];
    // Planned for a stale entry alone: one call may answer many reads.
    const countAhead = (key: ReadKey) => {
      for (const before of uncounted.splice(0)) callsAhead.add(this.line.callFor(before, request.freshness) ?? before);
      if (callsAhead.size === 0) return 0;
      const isAmongThem = callsAhead.has(this.line.callFor(key, request.freshness) ?? key);
      return callsAhead.size - (isAmongThem ? 1 : 0);
    };

    for (const key of keys) {
      const result = this.#fromCache(key, request, countAhead) ?? this.#whileFailing(key, request.freshness);
      if (result) results.set(key, result);
      else uncounted.push(key);
    }
    return results;
  }

  #fromCache(key: ReadKey, request: CallerRequest, countAhead: (key: ReadKey) => number): ServedResult | undefined {
    const { freshness } = request;
    const accepted = this.#cache.findAccepted(key, freshness);
    if (!accepted) return undefined;
    const { entry, isStale } = accepted;
    if (!isStale) return { ...entry, staleReason: undefined, waiter: undefined };
    if (!freshness.mayCall) return { ...entry, staleReason: 'ONLY_IF_CACHED', waiter: undefined };

    const staleReason = this.line.whyServeStale(key, request, countAhead(key)) ?? this.#whyNotHere(key, freshness);
    return staleReason && { ...entry, staleReason, waiter: undefined };
  }

  /** Returns the result of a read whose call failed, and is not tried again yet. */
  #whileFailing(key: ReadKey, freshness: Freshness): ReadResult | undefined {
    const error = freshness.mayCall ? this.#failedCalls.errorOf(key, freshness.maxAgeMs) : undefined;
    const earlier = error && this.#cache.findBeforeUnknownWrite(key, freshness);
    return earlier ? { ...earlier.entry, staleReason: 'UPSTREAM_FAILED', waiter: undefined } : error;
  }

  /** Returns a reason if another replica refreshes the entry. */
  #whyNotHere(key: ReadKey, freshness: Freshness): StaleReason | undefined {
    const list = this.#listToRefresh(key, freshness);
    return list !== undefined && this.#lists?.isRefreshedElsewhere(list) ? 'SAVING_QUOTA' : undefined;
  }

  /** Returns the lists that this replica would call for now only to refresh stale entries. */
  #listsToClaim(keys: readonly ReadKey[], freshness: Freshness, results: Results): ListName[] {
    if (!this.#lists || !freshness.mayCall) return [];
    const stale = keys.filter((key) => !results.has(key) && this.#cache.findAccepted(key, freshness));
    const lists = stale.map((key) => this.#listToRefresh(key, freshness)).filter((list) => list !== undefined);
    return [...new Set(lists)].filter((list) => !this.#pending.isInFlight(list));
  }

  /** Returns the list that this replica would call for. A request that names its own age does not leave it to another one. */
  #listToRefresh(key: ReadKey, freshness: Freshness): ListName | undefined {
    if (!this.#lists || !freshness.mayServeStaleToSaveCalls) return undefined;
    const call = this.line.callFor(key, freshness);
    return call !== undefined && isList(call) ? call : undefined;
  }
}
