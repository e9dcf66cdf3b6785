import type { BudgetFit } from '../caller/budget-fit.ts';
import type { Caller, Callers } from '../caller/callers.ts';
import type { FreshnessDefaults } from '../caller/freshness.ts';
import { NO_USAGE } from '../caller/usage.ts';
import type { FreshReads } from '../caller/usage.ts';
import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import type { ResolverContext } from '../schema/builder.ts';
import { createFreshnessReader } from './asked-freshness.ts';
import type { Account } from './remembered-answers.ts';
import type { RequestTerms } from './request-terms.ts';
import type { Wanted } from './wanted.ts';

/** What a request has beside its document. */
export interface RequestContext extends Account, ResolverContext {
  /** Why nothing can be read or written, or undefined. */
  readonly refusal: PetqlError | undefined;
  /** See `UsageMeter`. */
  freshReads(): FreshReads | undefined;
  /** Whether it is not to run, but to be told its price. */
  readonly dryRun: boolean;
  /** The most calls that this can cost now, retries aside. */
  worstCase(wanted: Wanted): number;
  /** Whether so many calls fit what is left of the plan, and when the last of them does. */
  fit(calls: number): Promise<BudgetFit & { readonly at: Date }>;
}

export interface RequestContextOptions {
  readonly callers: Callers;
  readonly clock: Clock;
  /** How long a request may wait for the plan, in milliseconds. */
  readonly maxWaitMs: number;
  /** How old answers may be where the request does not say. */
  readonly freshness: FreshnessDefaults;
}

/** @param caller whose key the terms have, where that was looked up already. */
export type CreateRequestContext = (terms: RequestTerms, caller?: Caller) => RequestContext;

/** Finds whose request it is, and how long it may take. */
export function createRequestContext(options: RequestContextOptions): CreateRequestContext {
  const { callers, clock, maxWaitMs } = options;
  const freshnessOf = createFreshnessReader(options.freshness);
  return ({ apiKey, waitMs = maxWaitMs, signal, cacheControl, dryRun, trace }, known) => {
    if (apiKey instanceof PetqlError) return { ...strangerContext(apiKey, clock.now()), dryRun };
    const deadlineMs = clock.elapsed() + Math.min(maxWaitMs, waitMs);
    const freshness = freshnessOf(cacheControl);
    const caller = known ?? callers.withKey(apiKey);
    const pets = caller.pets({ deadlineMs, signal, freshness, trace });
    const refusal = caller.refusal();
    return {
      pets: refusal ? petsOfNobody(refusal) : pets,
      usage: pets.usage,
      freshReads: pets.freshReads,
      budget: () => caller.budget.read(),
      countSaved: () => caller.saved(pets.saved()),
      latestBudget: () => caller.budget.latest(),
      refusal,
      dryRun,
      worstCase: ({ demands, creations }) => caller.worstCase(demands, freshness) + creations,
      async fit(calls) {
        const fit = await caller.fit(calls);
        return { ...fit, waitMs: Math.ceil(fit.waitMs), at: new Date(clock.now() + fit.waitMs) };
      },
    };
  };
}

/** Whoever has no key gets the same error from all that needs one. */
function strangerContext(error: PetqlError, nowMs: number): Omit<RequestContext, 'dryRun'> {
  return {
    pets: petsOfNobody(error),
    usage: () => NO_USAGE,
    freshReads: () => undefined,
    budget: () => Promise.reject(error),
    // No call is made without a key.
    worstCase: () => 0,
    fit: () => Promise.resolve({ waitMs: 0, at: new Date(nowMs), window: undefined }),
    countSaved() {},
    latestBudget: () => undefined,
    refusal: error,
  };
}

/** Fails at once, so that a list of a hundred animals fails as one. */
function petsOfNobody(error: PetqlError): ResolverContext['pets'] {
  const fail = () => {
    throw error;
  };
  return { list: fail, byId: fail, create: fail };
}
