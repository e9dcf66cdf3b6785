import type { Clock } from '../common/clock.ts';
import type { Pet } from './pet.ts';
import type { PetApi } from './pet-api.ts';
import type { UpstreamOutcome } from '../upstream/outcome.ts';
import { LONGEST_CALL_MS } from '../common/call-times.ts';

/** When the upstream removes `GET /pets/{petId}` (pet-api.md, "Get an animal"): 5 December 2030. */
const SUNSET_MS = Date.UTC(2030, 11, 5);

/** The documented end of `GET /pets/{petId}`, and what its 404s mean. */
export class GetRoute {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #petApi: Pick<PetApi, 'hasWorked'>;
  /** Whether a get was answered 404 before any call had worked: a list finds out whether any does. */
  #is404Unproven = false;

  constructor(clock: Pick<Clock, 'now'>, petApi: Pick<PetApi, 'hasWorked'>) {
    this.#clock = clock;
    this.#petApi = petApi;
  }

  get mayGet(): boolean {
    return this.isBeforeSunset && (!this.#is404Unproven || this.#petApi.hasWorked);
  }

  get isBeforeSunset(): boolean {
    return this.#clock.now() < SUNSET_MS - LONGEST_CALL_MS;
  }

  /**
   * Returns the outcome of a get: null for a pet that does not exist. `not-found` is left where no call has worked yet, since the base
   * URL itself may be wrong.
   */
  judge(outcome: UpstreamOutcome<Pet>): UpstreamOutcome<Pet | null> {
    // After the sunset a 404 may mean that the route is gone, and proves no absence.
    if (outcome.kind === 'not-found' && !this.isBeforeSunset) return { kind: 'route-gone', status: 404 };
    const is404 = outcome.kind === 'not-found' || (outcome.kind === 'route-gone' && outcome.status === 404);
    if (is404 && !this.#petApi.hasWorked) {
      this.#is404Unproven = true;
      return { kind: 'not-found' };
    }
    return outcome.kind === 'not-found' ? { kind: 'ok', value: null } : outcome;
  }
}
