import type { BudgetFit } from '../caller/budget-fit.ts';
import type { BudgetView } from '../caller/budget.ts';
import type { Callers } from '../caller/callers.ts';
import { readFreshness } from '../caller/freshness.ts';
import type { Freshness, FreshnessDefaults } from '../caller/freshness.ts';
import { NO_USAGE } from '../caller/usage.ts';
import type { Usage } from '../caller/usage.ts';
import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import type { ResolverContext } from '../schema/builder.ts';
import type { RequestTerms } from './request-terms.ts';
import type { Wanted } from './wanted.ts';

/** What a request has beside its document. */
export interface RequestContext extends ResolverContext {
  /** Why nothing can be read or written, or undefined. */
  readonly refusal: PetqlError | undefined;
  /** What the request has cost so far. */
  usage(): Usage;
  /** Whether it is not to run, but to be told its price. */
  readonly dryRun: boolean;
  /** The most calls that this can cost now, retries aside. */
  worstCase(wanted: Wanted): number;
  /** Whether so many calls fit what is left of the plan, and when the last of them does. */
  fit(calls: number): Promise<BudgetFit & { readonly at: Date }>;
  /** It is over: what it has saved counts. */
  countSaved(): void;
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
  const freshnessOf = createFreshnessReader(options.freshness);
  return ({ apiKey, waitMs = maxWaitMs, signal, cacheControl, dryRun, trace }) => {
    if (apiKey instanceof PetqlError) return { ...strangerContext(apiKey), dryRun };
    const deadlineMs = clock.elapsed() + Math.min(maxWaitMs, waitMs);
    const freshness = freshnessOf(cacheControl);
    const caller = callers.withKey(apiKey);
    const pets = caller.pets({ deadlineMs, signal, freshness, trace });
    return {
      pets,
      usage: pets.usage,
      budget: () => caller.budget.read(),
      countSaved: () => caller.saved(pets.saved()),
      latestBudget: () => caller.budget.latest(),
      refusal: caller.refusal(),
      dryRun,
      worstCase: ({ demands, creations }) => caller.worstCase(demands, freshness) + creations,
      async fit(calls) {
        const fit = await caller.fit(calls);
        return { ...fit, waitMs: Math.ceil(fit.waitMs), at: new Date(clock.now() + fit.waitMs) };
      },
    };
  };
}

/** Nearly all requests ask for the same: what the last one asked for is not read again. */
function createFreshnessReader(defaults: FreshnessDefaults): (cacheControl: string | undefined) => Freshness {
  const usual = readFreshness(undefined, defaults);
  let latest = { asked: '', freshness: usual };
  return (cacheControl) => {
    if (!cacheControl) return usual;
    if (cacheControl !== latest.asked) {
      latest = { asked: cacheControl, freshness: readFreshness(cacheControl, defaults) };
    }
    return latest.freshness;
  };
}

/** Whoever has no key gets the same error from all that needs one. */
function strangerContext(error: PetqlError): Omit<RequestContext, 'dryRun'> {
  const fail = () => Promise.reject(error);
  return {
    pets: { list: fail, byId: fail, create: fail },
    usage: () => NO_USAGE,
    budget: fail,
    // No call is made without a key.
    worstCase: () => 0,
    fit: () => Promise.reject(error),
    countSaved() {},
    latestBudget: () => undefined,
    refusal: error,
  };
}
