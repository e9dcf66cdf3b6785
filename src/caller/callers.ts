import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import type { PetqlError } from '../errors.ts';
import type { Ledger } from '../throttle/ledger.ts';
import { createThrottle } from '../throttle/throttle.ts';
import type { UpstreamClock } from '../throttle/upstream-clock.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import { createBudget } from './budget.ts';
import type { Budget } from './budget.ts';
import { createPets } from './pets.ts';
import type { Pets, RequestLife } from './pets.ts';
import { createRefusedKey } from './refused-key.ts';

/** Callers remembered at most; a caller without one of these places starts anew, but for the calls that it spent. */
const MOST_CALLERS = 100_000;

/** Whoever holds one API key. All state is kept per caller, and none of it is seen by another. */
export interface Caller {
  /** The reads and writes of one request. */
  pets(life: RequestLife): Pets;
  readonly budget: Budget;
  /** Why nothing of this caller's can run at the moment, or undefined. */
  refusal(): PetqlError | undefined;
}

export interface Callers {
  /** The caller with this API key; the same one for the same key. */
  withKey(apiKey: string): Caller;
  /** Refuses whoever waits and whoever comes, and settles once the calls under way are over and written down. */
  close(): Promise<void>;
}

export interface CallersOptions {
  readonly petApi: PetApi;
  readonly ledger: Ledger;
  readonly upstreamClock: UpstreamClock;
  readonly clock: Clock;
}

export function createCallers(options: CallersOptions): Callers {
  const callers = new LRUCache<string, Caller & { close(): Promise<void> }>({ max: MOST_CALLERS });
  let closing = false;
  return {
    withKey(apiKey) {
      const known = callers.get(apiKey) ?? createCaller(apiKey, options);
      callers.set(apiKey, known);
      if (closing) void known.close();
      return known;
    },
    async close() {
      closing = true;
      await Promise.all([...callers.values()].map((caller) => caller.close()));
    },
  };
}

function createCaller(apiKey: string, options: CallersOptions): Caller & { close(): Promise<void> } {
  const { petApi, clock } = options;
  const refusedKey = createRefusedKey(clock);
  const throttle = createThrottle({ apiKey, ...options });
  return {
    pets: (life) => createPets({ apiKey, petApi, throttle, refusedKey, clock, life }),
    budget: createBudget(throttle, clock),
    refusal: () => (refusedKey.remainingMs() > 0 ? refusedKey.error() : undefined),
    close: () => throttle.close(),
  };
}
