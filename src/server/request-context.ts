import type { ExecutionResult, OperationTypeNode } from 'graphql';
import type { Caller, QuotaFit } from '../caller/caller.ts';
import type { Callers } from '../caller/callers.ts';
import type { Demands } from '../caller/cost-estimate.ts';
import type { CachedRead, Pets, RequestPets } from '../caller/request-pets.ts';
import { NO_USAGE } from '../caller/usage.ts';
import { PetqlError } from '../errors.ts';
import { readFreshness } from '../reads/freshness.ts';
import type { RequestTerms } from '../reads/read-request.ts';
import type { CheckedOptions } from '../settings.ts';
import type { OperationSpan } from '../tracing.ts';
import { givenApiKey, readApiKey } from './api-key.ts';
import type { HttpRequest, InProcessOptions } from './http/http-message.ts';
import { quotaHeaders } from './http/quota-headers.ts';

/** What petql learns about one GraphQL request on its way. */
export interface RequestState {
  readonly request: HttpRequest;
  /** In the log and in the response's `X-Request-Id`. */
  readonly id: string;
  readonly startedAtMs: number;
  /** The calls of the operation belong to its trace. Undefined where the request is none. */
  readonly span: OperationSpan | undefined;
  /** Undefined where the document does not name it, or is none. */
  operation?: OperationName | undefined;
  context?: RequestContext;
  /** The result's data as JSON. */
  data?: string | undefined;
  result?: ExecutionResult;
}

export interface OperationName {
  readonly type: OperationTypeNode;
  readonly name: string | undefined;
}

/** What Yoga hands to each hook. */
export interface ServerContext extends Record<string, unknown> {
  readonly state: RequestState;
}

/** Yoga's types of some hooks leave the server context open. */
export function stateOf(serverContext: object): RequestState {
  return (serverContext as ServerContext).state;
}

/** What a request has besides its document. */
export type RequestContext = Awaited<ReturnType<ReturnType<typeof createRequestContext>>>;

/**
 * Reads a request's headers; with a server-side key, not its Authorization. Returns a promise only where a function finds the key.
 */
export function createRequestContext(settings: CheckedOptions, callers: Callers) {
  const { clock, log, maxWaitMs, petApiKey, allowClientCacheControl } = settings;
  const usualFreshness = readFreshness(undefined, settings);
  return ({ request, id, span }: Pick<RequestState, 'id' | 'request' | 'span'>) => {
    const terms = { id, trace: span?.trace };
    if (request.inProcess) return withKey(request, request.inProcess.apiKey, terms);
    if (petApiKey === undefined) return withKey(request, readApiKey(request.headers['authorization']), terms);
    if (typeof petApiKey === 'string') return withKey(request, givenApiKey(petApiKey), terms);
    return Promise.resolve(petApiKey(request.toRequest())).then((found: unknown) => {
      const isWrong = typeof (found ?? '') !== 'string';
      if (isWrong)
        log.error({ got: typeof found }, 'petApiKey: expected its function to find a string, null or undefined');
      return withKey(request, givenApiKey(isWrong ? undefined : (found as string | null | undefined)), terms);
    });
  };

  function withKey(request: HttpRequest, apiKey: string | PetqlError, terms: Pick<RequestTerms, 'id' | 'trace'>) {
    const { waitMs = maxWaitMs, cacheControl, dryRun } = request.inProcess ?? readHeaders(request);
    const freshness = cacheControl ? readFreshness(cacheControl, settings) : usualFreshness;
    const refusal = apiKey instanceof PetqlError ? apiKey : callers.refusal(apiKey);
    const deadlineMs = clock.elapsed() + Math.min(maxWaitMs, waitMs);
    /** Undefined before the first read, write or look at the quota: anybody can make up API keys. */
    let caller: Caller | undefined;
    let pets: RequestPets | undefined;
    let isRepeatable = refusal === undefined && !dryRun;
    /** @throws PetqlError without an API key. */
    const callerOf = () => {
      if (apiKey instanceof PetqlError) throw apiKey;
      return (caller ??= callers.begin(apiKey));
    };
    const petsOf = () => {
      if (refusal) throw refusal;
      return (pets ??= callerOf().pets({ deadlineMs, signal: () => request.signal(), freshness, ...terms }));
    };
    return {
      pets: lazyPets(petsOf),
      /** The quota that the reads beside it have left. */
      async quota() {
        isRepeatable = false;
        const { quota } = callerOf();
        // Resolvers run in one turn, so the reads after this field count too.
        await Promise.resolve();
        await pets?.settled();
        return quota.read();
      },
      /** Why nothing can be read or written, or undefined. */
      refusal,
      dryRun,
      /** What the request has cost so far. */
      usage: () => pets?.usage() ?? NO_USAGE,
      /** Counts the calls that this request has saved, once it is over. */
      countSaved: () => pets && caller?.saved(pets.saved()),
      /** Shows the caller's quota as this process knows it. */
      quotaHeaders() {
        const known = caller ?? (apiKey instanceof PetqlError ? undefined : callers.find(apiKey));
        return quotaHeaders(known?.quota.latest(), clock.now());
      },
      /** Returns the maximum of calls that this can cost now, retries aside. */
      worstCase: ({ reads, writes }: Demands) =>
        apiKey instanceof PetqlError ? 0 : callerOf().worstCase(reads, freshness) + writes,
      /** Returns whether so many calls fit the remaining quota, and when the last of them does. */
      async fit(calls: number) {
        const fit: QuotaFit =
          apiKey instanceof PetqlError ? { waitMs: 0, window: undefined } : await callerOf().fit(calls);
        const fitsAt = new Date(clock.now() + fit.waitMs).toISOString();
        return { fits: fit.waitMs === 0, fitsAt, waitMs: Math.ceil(fit.waitMs), window: fit.window };
      },
      /** What the request has read; undefined where its response depends on anything else. */
      cachedReads: () => (isRepeatable ? pets?.cachedReads() : undefined),
      /** Reads the same again from memory; returns false, and reads nothing, where any result has changed. */
      repeat: (reads: readonly CachedRead[]) => isRepeatable && petsOf().repeat(reads),
      /** Ends the request's use of its caller. */
      end: () => caller && callers.end(caller),
    };
  }

  function readHeaders({ headers }: HttpRequest): Omit<InProcessOptions, 'apiKey'> {
    const isHonored = petApiKey === undefined || allowClientCacheControl;
    const dryRun = headers['petql-dry-run'];
    return {
      waitMs: preferredWaitMs(headers['prefer']),
      cacheControl: isHonored ? headers['cache-control'] : undefined,
      dryRun: dryRun !== undefined && dryRun.trim() !== '0',
    };
  }
}

/** `Prefer: wait=5`, in seconds (RFC 7240, section 4.3). */
function preferredWaitMs(prefer: string | undefined): number | undefined {
  if (!prefer) return undefined;
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(prefer)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

/** The first field that reads or writes makes them. What that throws fails the whole field with one error. */
function lazyPets(petsOf: () => Pets): Pets {
  return {
    list: (status, limit) => petsOf().list(status, limit),
    byId: (id) => petsOf().byId(id),
    create: (pet, idempotencyKey) => petsOf().create(pet, idempotencyKey),
  };
}
