import type { BudgetView } from '../caller/budget.ts';
import type { Caller, Callers } from '../caller/callers.ts';
import { readFreshness } from '../caller/freshness.ts';
import type { FreshnessDefaults } from '../caller/freshness.ts';
import { NO_USAGE } from '../caller/usage.ts';
import type { Usage } from '../caller/usage.ts';
import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import type { ResolverContext } from '../schema/builder.ts';
import type { RequestTerms } from './request-terms.ts';

/** What a request has beside its document. */
export interface RequestContext extends ResolverContext {
  /** Why nothing can be read or written, or undefined. */
  readonly refusal: PetqlError | undefined;
  /** What the request has cost so far. */
  usage(): Usage;
  /** The caller's plan as known without asking, for the response's headers. */
  latestBudget(): BudgetView | undefined;
}

export interface RequestContextOptions {
  readonly callers: Callers;
  readonly clock: Clock;
  /** How long a request may wait for the plan, in milliseconds. */
  readonly maxWaitMs: number;
  /** How old answers may be where the request does not say. */
  readonly freshness: FreshnessDefaults;
}

/** Finds whose request it is, and how long it may take. */
export function createRequestContext(options: RequestContextOptions): (terms: RequestTerms) => RequestContext {
  const { callers, clock, maxWaitMs } = options;
  return ({ apiKey, waitMs = maxWaitMs, signal, cacheControl }) => {
    if (apiKey instanceof PetqlError) return strangerContext(apiKey);
    const deadlineMs = clock.elapsed() + Math.min(maxWaitMs, waitMs);
    const freshness = readFreshness(cacheControl, options.freshness);
    return callerContext(callers.withKey(apiKey), { deadlineMs, signal, freshness });
  };
}

function callerContext(caller: Caller, life: Parameters<Caller['pets']>[0]): RequestContext {
  const pets = caller.pets(life);
  return {
    pets,
    usage: pets.usage,
    budget: () => caller.budget.read(),
    latestBudget: () => caller.budget.latest(),
    refusal: caller.refusal(),
  };
}

/** Whoever has no key gets the same error from all that needs one. */
function strangerContext(error: PetqlError): RequestContext {
  const fail = () => Promise.reject(error);
  return {
    pets: { list: fail, byId: fail, create: fail, usage: () => NO_USAGE },
    usage: () => NO_USAGE,
    budget: fail,
    latestBudget: () => undefined,
    refusal: error,
  };
}
