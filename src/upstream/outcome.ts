import type { CallAnswer } from '../call-answer.ts';
import type { Explanation } from './connections.ts';
import type { TransportFailure, TransportResponse } from './exchange.ts';
import { ContractBreach, decodeError } from './json-body.ts';
import type { WireError } from './json-body.ts';
import { isRedirect, redirectProblem } from './redirect.ts';

/** Why a call failed. */
export type UpstreamFailure = { readonly kind: 'rate-limited' } | OwnFailure;

/**
 * A failure that the client hears of. A 429 is none: who needed the call waits for another one. `code` is that of the Error body, or of
 * the transport.
 */
export type OwnFailure =
  | { readonly kind: 'unauthenticated' }
  /** 403 with the Error body: any other is of a proxy or a firewall, and `failed`. */
  | { readonly kind: 'forbidden' }
  /** 404 with the Error body, of an operation that names one resource: there is none. */
  | { readonly kind: 'not-found' }
  /** 410 or 405, or a 404 without the Error body, of such an operation: perhaps the upstream no longer has its route. */
  | { readonly kind: 'route-gone'; readonly status: number }
  /** 404 before any call has worked: perhaps every call would fail alike. */
  | { readonly kind: 'wrong-base-path' }
  /** 400 or 422 with the Error body: the input is wrong. */
  | { readonly kind: 'invalid'; readonly status: number; readonly error: WireError }
  /** Any other status, with the Error body if there was one. `problem` says more to the operator. */
  | {
      readonly kind: 'failed';
      readonly status: number;
      readonly error: WireError | undefined;
      readonly problem?: string;
    }
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
  /** Whether the operation names one resource, which may be missing: only then a 404 is no failure of the upstream. */
  readonly isOfOne: boolean;
  /** @throws ContractBreach */
  readonly decode: (response: TransportResponse) => T;
}

/** These statuses have one meaning, whatever the body says. */
const BY_STATUS: Readonly<Record<number, UpstreamFailure>> = {
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
  return isOfKey ? { kind: 'failed', status, error: undefined } : outcome;
}

/** Returns the outcome of a complete response. */
export function outcomeOf<T>(response: TransportResponse, expected: Expected<T>): UpstreamOutcome<T> {
  const { success, decode, isOfOne, url } = expected;
  const { status, headers } = response;
  if (isRedirect(status)) {
    return { kind: 'failed', status, error: undefined, problem: redirectProblem(url, headers['location']) };
  }
  if (status < 200 || status >= 300) return errorOf(response, isOfOne);
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
  if (!isError) return { kind: 'no-answer', reason, ...(code && { code }), ...(problem && { problem }) };
  return BY_STATUS[head.status] ?? { kind: 'failed', status: head.status, error: undefined };
}

/** Returns why a call failed, for the log: the words of petql, Node and undici, and what an Error body says. */
export function failureDetails(failure: UpstreamFailure): object {
  if (failure.kind === 'no-answer') return { reason: failure.reason, code: failure.code, problem: failure.problem };
  if (failure.kind === 'unreadable') return { reason: failure.kind, problem: failure.problem };
  if (failure.kind === 'failed') {
    return {
      reason: failure.kind,
      ...(failure.problem !== undefined && { problem: failure.problem }),
      ...errorDetails(failure.error),
    };
  }
  return { reason: failure.kind };
}

function errorDetails(error: WireError | undefined): object | undefined {
  return error && { error: { code: error.code, message: error.message } };
}

function errorOf({ status, body }: TransportResponse, isOfOne: boolean): UpstreamFailure {
  const known = BY_STATUS[status];
  if (known) return known;

  const error = decodeError(body);
  if (status === 403 && error) return { kind: 'forbidden' };
  if ((status === 400 || status === 422) && error) return { kind: 'invalid', status, error };
  if (isOfOne && status === 404 && error?.status === 404) return { kind: 'not-found' };
  if (isOfOne && [404, 405, 410].includes(status)) return { kind: 'route-gone', status };
  return { kind: 'failed', status, error };
}
