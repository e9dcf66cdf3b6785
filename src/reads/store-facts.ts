import type { Int64 } from '../pets/int64.ts';
import type { ListSize, PlanFacts } from '../pets/call-planner.ts';
import type { GetRoute } from '../pets/get-route.ts';
import type { PetCache } from './cache/pet-cache.ts';
import type { CallKey, ListName } from '../pets/read-key.ts';

interface StoreFactsOptions {
  readonly cache: PetCache;
  readonly getRoute: GetRoute;
}

/** What the cache, the get route and the calls in flight say of the pet store at the moment. */
export class StoreFacts implements PlanFacts {
  readonly #options: StoreFactsOptions;
  readonly #flights: ReadonlySet<{ readonly key: CallKey }>;

  constructor(options: StoreFactsOptions, flights: ReadonlySet<{ readonly key: CallKey }>) {
    this.#options = options;
    this.#flights = flights;
  }

  sizeOf(list: ListName): ListSize {
    return this.#options.cache.sizeOf(list);
  }

  get mayGet(): boolean {
    return this.#options.getRoute.mayGet;
  }

  hasShown(list: ListName, id: Int64): boolean | undefined {
    return this.#options.cache.hasShown(list, id);
  }

  hasCalledOther(call: CallKey): boolean {
    return this.#options.cache.hasOther(call) || [...this.#flights].some(({ key }) => key !== call);
  }
}
