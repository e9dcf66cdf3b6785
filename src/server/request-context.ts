import type { BudgetView } from '../caller/budget.ts';
import type { Caller, Callers } from '../caller/callers.ts';
import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import type { ResolverContext } from '../schema/builder.ts';
import { readApiKey } from './api-key.ts';

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
  /** The key for every request, instead of the one that each caller brings. */
  readonly serverKey?: string;
}

/** Finds whose request it is, and how long it may take. */
export function createRequestContext(options: RequestContextOptions): (request: Request) => RequestContext {
  const { callers, clock, maxWaitMs, serverKey } = options;
  return ({ headers, signal }) => {
    const key = serverKey ?? readApiKey(headers.get('authorization'));
    if (key instanceof PetqlError) return strangerContext(key);
    const waitMs = Math.min(maxWaitMs, preferredWaitMs(headers.get('prefer')) ?? maxWaitMs);
    return callerContext(callers.withKey(key), { deadlineMs: clock.elapsed() + waitMs, signal });
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

/** `Prefer: wait=5`, in seconds (RFC 7240, section 4.3). */
function preferredWaitMs(prefer: string | null): number | undefined {
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(prefer ?? '')?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
