import type { BudgetView } from '../caller/budget.ts';
import type { Caller, Callers } from '../caller/callers.ts';
import { readFreshness } from '../caller/freshness.ts';
import type { FreshnessDefaults } from '../caller/freshness.ts';
import { NO_USAGE } from '../caller/usage.ts';
import type { Usage } from '../caller/usage.ts';
import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import type { ResolverContext } from '../schema/builder.ts';
import { readApiKey } from './api-key.ts';

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
  /** The key for every request, instead of the one that each caller brings. */
  readonly serverKey?: string;
  /** How old answers may be where the request does not say. */
  readonly freshness: FreshnessDefaults;
  /** Whether a request's `Cache-Control` counts: it can spend the plan of the key. Default: only where the key is its own. */
  readonly heedsCacheControl?: boolean;
}

/** Finds whose request it is, and how long it may take. */
export function createRequestContext(options: RequestContextOptions): (request: Request) => RequestContext {
  const { callers, clock, maxWaitMs, serverKey, heedsCacheControl = serverKey === undefined } = options;
  return ({ headers, signal }) => {
    const key = serverKey ?? readApiKey(headers.get('authorization'));
    if (key instanceof PetqlError) return strangerContext(key);
    const waitMs = Math.min(maxWaitMs, preferredWaitMs(headers.get('prefer')) ?? maxWaitMs);
    return callerContext(callers.withKey(key), {
      deadlineMs: clock.elapsed() + waitMs,
      signal,
      freshness: readFreshness(heedsCacheControl ? headers.get('cache-control') : null, options.freshness),
    });
  };
}

function callerContext(caller: Caller, life: Parameters<Caller['pets']>[0]): RequestContext {
  const pets = caller.pets(life);
  return {
    pets,
    usage: () => pets.usage,
    budget: () => caller.budget.read(),
    latestBudget: () => caller.budget.latest(),
    refusal: caller.refusal(),
  };
}

/** Whoever has no key gets the same error from all that needs one. */
function strangerContext(error: PetqlError): RequestContext {
  const fail = () => Promise.reject(error);
  return {
    pets: { list: fail, byId: fail, create: fail, usage: NO_USAGE },
    usage: () => NO_USAGE,
    budget: fail,
    latestBudget: () => undefined,
    refusal: error,
  };
}

/** `Prefer: wait=5`, in seconds (RFC 7240, section 4.3). */
function preferredWaitMs(prefer: string | null): number | undefined {
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(prefer ?? '')?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
