import type { BudgetView } from '../caller/budget.ts';
import type { Caller, Callers } from '../caller/callers.ts';
import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import type { ResolverContext } from '../schema/builder.ts';
import type { RequestTerms } from './request-terms.ts';

/** What a request has beside its document. */
export interface RequestContext extends ResolverContext {
  /** Why nothing can be read or written, or undefined. */
  readonly refusal: PetqlError | undefined;
  /** The caller's plan as known without asking, for the response's headers. */
  latestBudget(): BudgetView | undefined;
}

export interface RequestContextOptions {
  readonly callers: Callers;
  readonly clock: Clock;
  /** How long a request may wait for the plan, in milliseconds. */
  readonly maxWaitMs: number;
}

/** Finds whose request it is, and how long it may take. */
export function createRequestContext(options: RequestContextOptions): (terms: RequestTerms) => RequestContext {
  const { callers, clock, maxWaitMs } = options;
  return ({ apiKey, waitMs = maxWaitMs, signal }) => {
    if (apiKey instanceof PetqlError) return strangerContext(apiKey);
    const deadlineMs = clock.elapsed() + Math.min(maxWaitMs, waitMs);
    return callerContext(callers.withKey(apiKey), { deadlineMs, signal });
  };
}

function callerContext(caller: Caller, life: Parameters<Caller['pets']>[0]): RequestContext {
  return {
    pets: caller.pets(life),
    budget: () => caller.budget.read(),
    latestBudget: () => caller.budget.latest(),
    refusal: caller.refusal(),
  };
}

/** Whoever has no key gets the same error from all that needs one. */
function strangerContext(error: PetqlError): RequestContext {
  const fail = () => Promise.reject(error);
  return {
    pets: { list: fail, byId: fail, create: fail },
    budget: fail,
    latestBudget: () => undefined,
    refusal: error,
  };
}
