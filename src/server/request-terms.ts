import type { PetqlError } from '../errors.ts';
import type { ServerKey } from '../gateway-options.ts';
import type { TraceContext } from '../trace-context.ts';
import { givenApiKey, readApiKey } from './api-key.ts';
import { wantsDryRun } from './dry-run.ts';

/** Whose operation it is and how long it may take: the same for one that came over HTTP and for one run in process. */
export interface RequestTerms {
  /** The API key, or why there is none. */
  readonly apiKey: string | PetqlError;
  /** How long it may wait for the plan, in milliseconds, if it says so; never longer than the gateway allows. */
  readonly waitMs: number | undefined;
  /** Finds or makes what aborts when nobody waits for the answer any more. */
  readonly signal: () => AbortSignal | undefined;
  /** How old its answers may be, as a `Cache-Control` header says it. */
  readonly cacheControl: string | undefined;
  /** Whether it is not to run, but to be told its price. */
  readonly dryRun: boolean;
  /** The trace that its calls belong to; asked for when there is one. */
  readonly trace: () => TraceContext | undefined;
}

export interface TermsOptions {
  /** The server's key for its visitors, instead of the one that each of them brings. */
  readonly serverKey: ServerKey | undefined;
  /** Whether a visitor may spend the plan of the server's key with `Cache-Control`. Of its own plan each caller may. */
  readonly heedCacheControl: boolean;
  /** Where its operation stands, which may begin after its terms are known. */
  readonly trace: () => TraceContext | undefined;
}

/** The terms of a request. Where the server has a key for its visitors, their Authorization headers are not read. */
export async function httpTerms(request: Request, options: TermsOptions): Promise<RequestTerms> {
  const { headers } = request;
  const { serverKey } = options;
  const foundKey = typeof serverKey === 'function' ? givenApiKey(await serverKey(request)) : undefined;
  const read = {
    authorization: headers.get('authorization'),
    cacheControl: headers.get('cache-control'),
    prefer: headers.get('prefer'),
    dryRun: headers.get('petql-dry-run'),
  };
  return headerTerms(read, { ...options, foundKey, signal: () => request.signal });
}

/** The headers that say whose request it is, how it is to run and how old its answers may be. */
export interface TermsHeaders {
  readonly authorization: string | null | undefined;
  readonly cacheControl: string | null | undefined;
  readonly prefer: string | null | undefined;
  readonly dryRun: string | null | undefined;
}

export interface HeaderTermsOptions extends TermsOptions {
  /** What the server's function has found, where its key is a function. */
  readonly foundKey?: string | PetqlError | undefined;
  readonly signal: () => AbortSignal | undefined;
}

/** The same of its headers alone. */
export function headerTerms(headers: TermsHeaders, options: HeaderTermsOptions): RequestTerms {
  const { serverKey, heedCacheControl, foundKey, signal, trace } = options;
  const ownKey = typeof serverKey === 'string' ? givenApiKey(serverKey) : foundKey;
  const heeded = serverKey === undefined || heedCacheControl;
  return {
    apiKey: ownKey ?? readApiKey(headers.authorization ?? null),
    waitMs: preferredWaitMs(headers.prefer),
    signal,
    cacheControl: (heeded && headers.cacheControl) || undefined,
    dryRun: wantsDryRun(headers.dryRun),
    trace,
  };
}

/** `Prefer: wait=5`, in seconds (RFC 7240, section 4.3). */
function preferredWaitMs(prefer: string | null | undefined): number | undefined {
  if (!prefer) return undefined;
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(prefer)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
