import { MAY_BE_BANNED, PetqlError, retryIn } from '../common/errors.ts';
import type { UpstreamOperation } from '../common/events.ts';
import { isAboutKey } from './outcome.ts';
import type { OwnFailure } from './outcome.ts';
import type { WireError } from './json-body.ts';
import { isRedirect } from './redirect.ts';

/** A key that may be banned. */
export interface Ban {
  /** How long petql makes no call with it. */
  readonly retryAfterMs: number;
  /** By the wall clock. */
  readonly nowMs: number;
}

/** What it means that an operation has no route. An operation that is missing here does not compile. */
const WITHOUT_ROUTE: Readonly<Record<UpstreamOperation, string>> = {
  createPet: 'as if it could not add pets. Nothing was added. Try again later.',
  getPet:
    'as if it had no lookup by id, so petql cannot tell whether this pet exists. Try again later, or query by status.',
  listPets: 'as if it had no lists. Try again later.',
};

/** Returns the error of a call of this operation that failed. */
export function readError(failure: OwnFailure, operation: UpstreamOperation, ban?: Ban): PetqlError {
  if (ban && isAboutKey(failure)) {
    const again = retryIn(Math.ceil(ban.retryAfterMs), ban.nowMs);
    const code = failure.kind === 'unauthenticated' ? 'UNAUTHENTICATED' : 'FORBIDDEN';
    return new PetqlError(code, `${MAY_BE_BANNED}; retry at ${again.retryAt}.`, { details: { ...again } });
  }

  switch (failure.kind) {
    case 'unauthenticated':
      return new PetqlError(
        'UNAUTHENTICATED',
        `The pet API does not accept this API key${wordsOf(failure.error)} Check the key.`,
        {
          details: { upstream: { status: 401, ...(failure.error && { code: failure.error.code }) } },
        },
      );
    case 'forbidden':
      return new PetqlError(
        'FORBIDDEN',
        `The pet API does not allow this call with this API key${wordsOf(failure.error)}`,
        {
          details: { upstream: { status: 403, code: failure.error.code } },
        },
      );
    case 'no-answer':
      return failure.reason === 'timeout'
        ? new PetqlError('GATEWAY_TIMEOUT', 'The pet API took too long to respond. Try again.')
        : downstream(proxyProblem(failure.code) ?? NO_RESPONSE[failure.reason], {});
    case 'unreadable':
      return downstream(`The response of the pet API breaks its contract: ${failure.problem}.`, failure);
    case 'failed':
      return downstream(`The pet API ${adviceOn(failure)}`, { status: failure.status, code: failure.error?.code });
    case 'route-gone':
      return downstream(`The pet API responded with status ${failure.status} ${WITHOUT_ROUTE[operation]}`, failure);
    case 'wrong-base-path':
      return downstream('The pet API responds with 404; is its base URL right, with its /v1?', { status: 404 });
    case 'not-found':
      return downstream('The pet API responded with an unexpected 404.', { status: 404 });
    case 'invalid':
      return downstream(`The pet API rejected the request: ${failure.error.message}`, {
        status: failure.status,
        code: failure.error.code,
      });
  }
}

const NO_RESPONSE = {
  broken: 'The connection to the pet API broke before the response was complete. Try again.',
  malformed: 'The response of the pet API is not HTTP/1.1. The operator of petql finds the details in its log.',
  miscoded:
    'The body of the response of the pet API is not in the coding that its Content-Encoding names, or petql does not read that ' +
    'coding. The operator of petql finds the details in its log.',
  'too-large': 'The response of the pet API is larger than petql reads.',
  unreachable: 'petql could not reach the pet API; nothing was sent. Try again later.',
} as const;

/** Returns what a status means for another try. */
function adviceOn({ status, error }: OwnFailure & { readonly kind: 'failed' }): string {
  if (isRedirect(status)) {
    return (
      `redirects with status ${status}, which petql does not follow. The operator of petql finds in its log where to, and ` +
      'whether another base URL helps.'
    );
  }
  if (status === 403) return 'did not get the call: a proxy or a firewall before it responded with status 403.';
  if (status === 421 || status === 425) {
    return `responded with status ${status} before it read the call, so nothing was done. Try again.`;
  }
  const isForGood = (status >= 400 && status < 500 && !MAY_CHANGE.has(status)) || status === 501;
  if (!isForGood) return `responded with status ${status}. Try again later.`;
  if (error && status !== 501) return `rejected the request with status ${status}: ${error.message}`;
  return `responded with status ${status}. The same request will fail again.`;
}

/** Returns the end of a sentence, with what the pet API itself says. */
function wordsOf(error: WireError | undefined): string {
  const words = error?.message.trim() ?? '';
  if (words === '') return '.';
  return /[.!?]$/.test(words) ? `: ${words}` : `: ${words}.`;
}

/** 404, 405 and 410 here are those of a list or a create, which come and go with the routes of a proxy. */
const MAY_CHANGE: ReadonlySet<number> = new Set([404, 405, 408, 410, 423]);

/** Returns what a proxy says that rejects calls; undefined for any other failure. */
function proxyProblem(code = ''): string | undefined {
  const [, status] = /^PROXY_(\d+)$/.exec(code) ?? [];
  if (!status) return undefined;
  // Some proxies answer wrong credentials with 401.
  const advice = ['401', '407'].includes(status) ? 'Set the user and password in its URL.' : 'Check what it allows.';
  return `The proxy before the pet API rejects the call with ${status}; nothing was sent. ${advice}`;
}

function downstream(message: string, { status, code }: { status?: number; code?: string | undefined }): PetqlError {
  const upstream = { ...(status !== undefined && { status }), ...(code !== undefined && { code }) };
  return new PetqlError('DOWNSTREAM_SERVICE_ERROR', message, { details: { upstream } });
}
