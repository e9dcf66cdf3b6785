import type { CallAnswer } from '../common/call-answer.ts';
import type { Explanation } from './connections.ts';
import type { TransportFailure, TransportResponse } from './exchange.ts';
import { ContractBreach, decodeError } from './json-body.ts';
import type { WireError } from './json-body.ts';
import { isRedirect, redirectProblem } from './redirect.ts';

/** Why a call failed. */
export type UpstreamFailure = { readonly kind: 'rate-limited'; readonly error?: WireError | undefined } | OwnFailure;

/**
 * A failure that the client hears of. A 429 is none: who needed the call waits for another one. `code` is that of the Error body, or of
 * the transport.
 */
export type OwnFailure =
  | { readonly kind: 'unauthenticated'; readonly error?: WireError | undefined }
  /** 403 with the Error body: any other is of a proxy or a firewall, and `failed`. */
  | { readonly kind: 'forbidden'; readonly error: WireError }
  /** 404 with the Error body, of an operation that names one resource: there is none. */
  | { readonly kind: 'not-found' }
  /** 410 or 405, or a 404 without the Error body, of such an operation: perhaps the upstream no longer has its route. */
  | { readonly kind: 'route-gone'; readonly status: number }
  /** 404 before any call has worked: perhaps every call would fail alike. */
  | { readonly kind: 'wrong-base-path' }
  /** 400 or 422 with the Error body: the input is wrong. */
  | { readonly kind: 'invalid'; readonly status: number; readonly error: WireError }
  /** Any other status, with the Error body if there was one. The explanation is for the operator. */
  | ({ readonly kind: 'failed'; readonly status: number; readonly error: WireError | undefined } & Explanation)
  /** A 2xx that breaks the contract; `problem` says which field. */
  | {
      readonly kind: 'unreadable';
      readonly status: number;
      readonly problem: string;
      /** Whether another server wrote the body, such as a proxy. */
      readonly isForeign: boolean;
    }
  /** No response, or a 2xx that broke off. */
  | ({ readonly kind: 'no-answer'; readonly reason: TransportFailure['reason'] } & Explanation);

export type UpstreamOutcome<T> = { readonly kind: 'ok'; readonly value: T } | UpstreamFailure;

export interface UpstreamAnswer<T> extends CallAnswer {
  readonly outcome: UpstreamOutcome<T>;
  /** The age of a response from a cache before the upstream; undefined for one of the upstream itself. */
  readonly ageMs: number | undefined;
  /** Why it failed, for the log; undefined for a success. */
  readonly failure: object | undefined;
  /** The status of the response, even if it broke off; undefined without a response. */
  readonly status?: number | undefined;
}

/** What a call expects of its response. */
export interface Expected<T> {
  /** The status of a success. */
  readonly success: 200 | 201;
  /** The URL of the call. */
  readonly url: string;
  /** No text that is shown repeats it. */
  readonly apiKey: string;
  /** Whether the operation names one resource, which may be missing: only then a 404 is no failure of the upstream. */
  readonly isOfOne: boolean;
  /** @throws ContractBreach */
  readonly decode: (response: TransportResponse) => T;
}

/** These statuses have one meaning, whatever the body says. */
const BY_STATUS: Readonly<Record<number, { readonly kind: 'rate-limited' | 'unauthenticated' }>> = {
  401: { kind: 'unauthenticated' },
  429: { kind: 'rate-limited' },
};

/** Whether a 4xx says that the same request may succeed: RFC 9110, sections 15.5.9 and 15.5.20, and RFC 8470, section 5.2. */
export function isRepeatable(status: number): boolean {
  return status === 408 || status === 421 || status === 425;
}

/** Whether a response may be about the API key: a 403 of a proxy too. */
export function isAboutKey(failure: UpstreamFailure): boolean {
  if (failure.kind === 'failed') return failure.status === 403;
  return failure.kind === 'forbidden' || failure.kind === 'unauthenticated';
}

/** Whether the same call may succeed a moment later. */
export function isTransient(failure: UpstreamFailure): boolean {
  if (failure.kind === 'no-answer') return failure.reason !== 'too-large';
  if (failure.kind !== 'failed') return false;
  return (failure.status >= 500 && failure.status !== 501) || isRepeatable(failure.status);
}

/** Returns the outcome of a response from a cache before the upstream: what it says of the key is not about this call. */
export function outcomeFromCache<T>(outcome: UpstreamOutcome<T>, status: number): UpstreamOutcome<T> {
  const isOfKey = ['forbidden', 'rate-limited', 'unauthenticated'].includes(outcome.kind);
  return isOfKey
    ? { kind: 'failed', status, error: undefined, problem: 'a cache before the pet API responded' }
    : outcome;
}

/** Returns the outcome of a complete response. */
export function outcomeOf<T>(response: TransportResponse, expected: Expected<T>): UpstreamOutcome<T> {
  const { success, decode, url } = expected;
  const { status, headers } = response;
  if (isRedirect(status)) {
    return { kind: 'failed', status, error: undefined, problem: redirectProblem(url, headers['location']) };
  }
  if (status < 200 || status >= 300) return errorOf(response, expected);
  if (status !== success) {
    return { kind: 'unreadable', status, problem: `the status: expected ${success}`, isForeign: true };
  }

  try {
    return { kind: 'ok', value: decode(response) };
  } catch (error) {
    if (!(error instanceof ContractBreach)) throw error;
    return { kind: 'unreadable', status, problem: error.message, isForeign: error.isForeign };
  }
}

/** Returns the outcome of a response that broke off, or never came. An error status counts without its body. */
export function failureOf({ head, reason, code, problem }: TransportFailure): UpstreamFailure {
  const isError = head && (head.status < 200 || head.status >= 300);
  const explanation = { ...(code && { code }), ...(problem && { problem }) };
  if (!isError) return { kind: 'no-answer', reason, ...explanation };
  return BY_STATUS[head.status] ?? { kind: 'failed', status: head.status, error: undefined, ...explanation };
}

/** Says for the log why a call failed, where nothing else does. */
const PROBLEMS: Partial<Record<UpstreamFailure['kind'], string>> = {
  failed: 'the body is not the Error body of the pet API: something before it may have responded',
  unauthenticated: 'the body is not the Error body of the pet API: something before it may have responded',
  'not-found': 'before any call has worked, a 404 may be about the base URL',
  'route-gone': 'the pet API responds as if it had no such route',
  'wrong-base-path': 'nothing has worked below this base URL yet',
};

/** Returns why a call failed, for the log: a code or a problem in words, or what the Error body says. */
export function failureDetails(failure: UpstreamFailure): object {
  const { kind } = failure;
  const { code, problem } = failure as Explanation;
  const error = 'error' in failure ? failure.error : undefined;
  const words = problem ?? (code === undefined && !error ? PROBLEMS[kind] : undefined);
  return {
    reason: kind === 'no-answer' ? failure.reason : kind,
    ...(code !== undefined && { code }),
    ...(words !== undefined && { problem: words }),
    ...(error && { error: { code: error.code, message: error.message } }),
  };
}

function errorOf<T>({ status, body }: TransportResponse, { apiKey, isOfOne }: Expected<T>): UpstreamFailure {
  const error = decodeError(body, apiKey);
  const known = BY_STATUS[status];
  if (known) return { ...known, error };

  if (status === 403 && error) return { kind: 'forbidden', error };
  if ((status === 400 || status === 422) && error) return { kind: 'invalid', status, error };
  if (isOfOne && status === 404 && error?.status === 404) return { kind: 'not-found' };
  if (isOfOne && [404, 405, 410].includes(status)) return { kind: 'route-gone', status };
  return { kind: 'failed', status, error };
}
