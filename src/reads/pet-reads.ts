import type { FailedCalls } from './failed-calls.ts';
import { notCachedError } from './freshness.ts';
import type { Freshness } from './freshness.ts';
import type { PetCache } from './pet-cache.ts';
import type { ReadRequest, ReadResult, RequestTerms, ServedResult, StaleReason } from './read-request.ts';
import { isList } from './read-key.ts';
import type { ListName, ReadKey } from './read-key.ts';
import type { ReadQueue } from './read-queue.ts';
import type { CallerLists } from './shared-lists.ts';

interface PetReadsOptions {
  readonly cache: PetCache;
  readonly failedCalls: FailedCalls;
  readonly queue: ReadQueue;
  /** Undefined without Redis. */
  readonly sharedLists: CallerLists | undefined;
}

/** What of a request decides how its reads are served. */
type ReadTerms = Pick<RequestTerms, 'freshness' | 'visitor'>;

export type PetReads = ReturnType<typeof createPetReads>;

/** All reads of one caller: what is cached is served, the rest waits together for as few calls as possible. */
export function createPetReads({ cache, failedCalls, queue, sharedLists }: PetReadsOptions) {
  return {
    /** Reads a batch of different keys of one request; with an error in the place of each read that fails. */
    async load(keys: readonly ReadKey[], request: ReadRequest): Promise<ReadResult[]> {
      const { freshness } = request;
      // Another replica may have written, or called for it: a look at Redis costs no call.
      const looking = sharedLists?.catchUp();
      if (looking) await looking;
      let results = serve(keys, request);
      const refreshed = listsToRefresh(keys, freshness, results);
      if (sharedLists && refreshed.length > 0) {
        await sharedLists.claim(refreshed);
        // Another replica may have claimed them first.
        results = serve(keys, request);
      }
      const left = keys.filter((key) => !results.has(key));
      if (left.length > 0 && freshness.mayCall) {
        const added = await queue.add(left, request);
        for (const [index, result] of added.entries()) results.set(left[index] as ReadKey, result);
      }
      return keys.map((key) => results.get(key) ?? notCachedError());
    },
    /**
     * Returns what `load` would serve from the cache at this moment; undefined where it would call or wait. Looks at Redis in the
     * background, and spends, counts and logs nothing. What it finds is the very same object as before while nothing about it has
     * changed.
     */
    peek(key: ReadKey, terms: ReadTerms): ServedResult | undefined {
      sharedLists?.keepUp();
      return sharedLists?.isBlind ? undefined : fromCache(key, terms, 0);
    },
  };

  /** What is served without a call: what is cached, and the errors of calls that failed within `maxAge`. */
  function serve(keys: readonly ReadKey[], terms: ReadTerms): Map<ReadKey, ReadResult> {
    const { freshness } = terms;
    const served = new Map<ReadKey, ReadResult>();
    for (const [index, key] of keys.entries()) {
      // In a small store one call answers all of them.
      const answer = fromCache(key, terms, cache.storeSize === 'small' ? 0 : index - served.size);
      const result = answer ?? (freshness.mayCall ? failedCalls.errorOf(key, freshness.maxAgeMs) : undefined);
      if (result) served.set(key, result);
    }
    return served;
  }

  function fromCache(key: ReadKey, terms: ReadTerms, ahead: number): ServedResult | undefined {
    const { freshness } = terms;
    const accepted = cache.findAccepted(key, freshness);
    if (!accepted) return undefined;
    const { entry, isStale } = accepted;
    if (!isStale) return { ...entry, staleReason: undefined, hasWaited: false };
    if (!freshness.mayCall) return { ...entry, staleReason: 'ONLY_IF_CACHED', hasWaited: false };
    const staleReason = queue.whyNotRefresh(key, terms, ahead) ?? whyNotHere(key, freshness);
    return staleReason && { ...entry, staleReason, hasWaited: false };
  }

  function whyNotHere(key: ReadKey, freshness: Freshness): StaleReason | undefined {
    const list = listToRefresh(key, freshness);
    return list !== undefined && sharedLists?.isRefreshedElsewhere(list) === true ? 'SAVING_QUOTA' : undefined;
  }

  /** The lists that would be called for now, only to refresh what these reads are served otherwise. */
  function listsToRefresh(
    keys: readonly ReadKey[],
    freshness: Freshness,
    results: ReadonlyMap<ReadKey, ReadResult>,
  ): ListName[] {
    if (!sharedLists || !freshness.mayCall) return [];
    const stale = keys.filter((key) => !results.has(key) && cache.findAccepted(key, freshness));
    const lists = new Set(stale.map((key) => listToRefresh(key, freshness)).filter((list) => list !== undefined));
    return [...lists].filter((list) => !queue.isInFlight(list));
  }

  /** The list that this replica would call for. A request that names its own age does not leave it to another one. */
  function listToRefresh(key: ReadKey, freshness: Freshness): ListName | undefined {
    if (!sharedLists || !freshness.mayServeStaleToSaveCalls) return undefined;
    const call = queue.callFor(key, freshness);
    return call !== undefined && isList(call) ? call : undefined;
  }
}
