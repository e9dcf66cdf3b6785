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
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal | undefined;
  /** How old its answers may be, as a `Cache-Control` header says it. */
  readonly cacheControl: string | undefined;
  /** Whether it is not to run, but to be told its price. */
  readonly dryRun: boolean;
  /** The trace that it belongs to. */
  readonly trace: TraceContext | undefined;
}

export interface TermsOptions {
  /** The server's key for its visitors, instead of the one that each of them brings. */
  readonly serverKey: ServerKey | undefined;
  /** Whether a visitor may spend the plan of the server's key with `Cache-Control`. Of its own plan each caller may. */
  readonly heedCacheControl: boolean;
  /** Where its operation stands, which has begun before the terms are known. */
  readonly trace: TraceContext | undefined;
}

/** The terms of a request. Where the server has a key for its visitors, their Authorization headers are not read. */
export async function httpTerms(request: Request, options: TermsOptions): Promise<RequestTerms> {
  const { headers, signal } = request;
  const { serverKey, heedCacheControl, trace } = options;
  const apiKey =
    serverKey === undefined
      ? readApiKey(headers.get('authorization'))
      : givenApiKey(typeof serverKey === 'function' ? await serverKey(request) : serverKey);
  const heeded = serverKey === undefined || heedCacheControl;
  const cacheControl = (heeded && headers.get('cache-control')) || undefined;
  const dryRun = wantsDryRun(headers.get('petql-dry-run'));
  return { apiKey, waitMs: preferredWaitMs(headers.get('prefer')), signal, cacheControl, dryRun, trace };
}

/** `Prefer: wait=5`, in seconds (RFC 7240, section 4.3). */
function preferredWaitMs(prefer: string | null): number | undefined {
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?\s*(?:$|[,;])/i.exec(prefer ?? '')?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
