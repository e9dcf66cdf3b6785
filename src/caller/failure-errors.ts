import { PetqlError } from '../errors.ts';
import type { UpstreamFailure } from '../upstream/pet-api.ts';
import type { Refused } from '../throttle/throttle.ts';

/** The error of a call that the throttle did not let through. */
export function refusedError({ reason, window, ...refused }: Refused, nowMs: number): PetqlError {
  const retryAfterMs = Math.ceil(refused.retryAfterMs);
  const retryAt = new Date(nowMs + retryAfterMs).toISOString();
  const details = { retryAfterMs, retryAt, window };
  if (reason === 'banned')
    return new PetqlError('FORBIDDEN', `${MAY_BE_BANNED} It is left alone until ${retryAt}.`, { details });
  return new PetqlError('RATE_LIMITED', `${WHY_REFUSED[reason]} Try again at ${retryAt}.`, { details });
}

const MAY_BE_BANNED =
  'The pet adoption service refuses this API key right after 429s; the key may be banned for a while.';

const WHY_REFUSED = {
  aborted: 'The request was given up.',
  crowded: 'Too many requests wait for this API key already.',
  late: 'The deadline of this request has come before anything could be sent.',
  plan: 'The plan of this API key allows no more calls before the deadline of this request.',
  stopping: 'petql is stopping.',
} as const;

/**
 * The error of a read that failed.
 *
 * @param refusedLately whether there were 429s a short while ago, after which a refused key may be a banned one.
 */
export function readError(failure: UpstreamFailure, refusedLately: boolean): PetqlError {
  switch (failure.kind) {
    case 'unauthenticated':
      return new PetqlError(
        'UNAUTHENTICATED',
        refusedLately ? MAY_BE_BANNED : 'The pet adoption service does not accept this API key.',
      );
    case 'forbidden':
      return new PetqlError(
        'FORBIDDEN',
        refusedLately ? MAY_BE_BANNED : 'The pet adoption service forbids this to this API key.',
        { details: { upstream: { status: 403 } } },
      );
    case 'rate-limited':
      return new PetqlError('RATE_LIMITED', 'The plan of this API key allows no more calls for a while.');
    case 'no-answer':
      return failure.reason === 'timeout'
        ? new PetqlError('GATEWAY_TIMEOUT', 'The pet adoption service took too long to answer; try again.')
        : downstream(NO_ANSWER[failure.reason], {});
    case 'unreadable':
      return downstream(`The pet adoption service's answer breaks its contract: ${failure.problem}.`, {
        status: failure.status,
      });
    case 'failed':
      return downstream(`The pet adoption service failed with status ${failure.status}; try again later.`, {
        status: failure.status,
        code: failure.code,
      });
    case 'route-gone':
      return downstream('The pet adoption service no longer answers this operation.', { status: failure.status });
    case 'not-found':
      return downstream('The pet adoption service found nothing where it must have something.', { status: 404 });
    case 'invalid':
      return downstream(`The pet adoption service refused the request: ${failure.error.message}`, {
        status: 400,
        code: failure.error.code,
      });
  }
}

/** The error of a write that failed: where it may have happened all the same, it says so. */
export function writeError(failure: UpstreamFailure, sent: boolean, refusedLately: boolean): PetqlError {
  if (mayHaveHappened(failure, sent)) return outcomeUnknownError('status' in failure ? failure.status : undefined);
  return readError(failure, refusedLately);
}

/** @param status that of an answer which was not clear; undefined where there was none. */
export function outcomeUnknownError(status: number | undefined): PetqlError {
  return new PetqlError(
    'OUTCOME_UNKNOWN',
    'The pet adoption service gave no clear answer, so the animal may have been added or not. ' +
      'Look for it with the pets query before adding it again; with an idempotencyKey, again means under another one.',
    { details: status === undefined ? {} : { upstream: { status } } },
  );
}

const NO_ANSWER = {
  broken: 'The connection to the pet adoption service broke before its answer was complete; try again.',
  'too-large': "The pet adoption service's answer is larger than petql reads.",
  unreachable: 'The pet adoption service cannot be reached; nothing was sent. Try again later.',
} as const;

/** A refusal in the 400s is clear, but for 408: the upstream gave up on a request that it may have read. */
export function mayHaveHappened(failure: UpstreamFailure, sent: boolean): boolean {
  if (failure.kind === 'no-answer') return sent;
  if (failure.kind === 'unreadable') return true;
  return failure.kind === 'failed' && (failure.status < 400 || failure.status === 408 || failure.status >= 500);
}

function downstream(message: string, upstream: { status?: number; code?: string | undefined }): PetqlError {
  return new PetqlError('DOWNSTREAM_SERVICE_ERROR', message, { details: { upstream } });
}
