import type { Int64 } from '../pets/int64.ts';
import type { ListSize, PlanFacts } from '../pets/call-planner.ts';
import type { GetRoute } from '../pets/get-route.ts';
import type { PetCache } from './cache/pet-cache.ts';
import type { CallKey, ListName } from '../pets/read-key.ts';

/** What the cache, the get route and the calls in flight say of the pet store at the moment. */
export class StoreFacts implements PlanFacts {
  readonly #cache: PetCache;
  readonly #getRoute: GetRoute;
  readonly #flights: ReadonlySet<{ readonly key: CallKey }>;

  constructor(cache: PetCache, getRoute: GetRoute, flights: ReadonlySet<{ readonly key: CallKey }>) {
    this.#cache = cache;
    this.#getRoute = getRoute;
    this.#flights = flights;
  }

  sizeOf(list: ListName): ListSize {
    return this.#cache.sizeOf(list);
  }

  get mayGet(): boolean {
    return this.#getRoute.mayGet;
  }

  hasShown(list: ListName, id: Int64): boolean | undefined {
    return this.#cache.hasShown(list, id);
  }

  hasCalledOther(call: CallKey): boolean {
    return this.#cache.hasOther(call) || [...this.#flights].some(({ key }) => key !== call);
  }
}
