import { PetqlError } from '../common/errors.ts';
import type { UpstreamFailure } from '../upstream/outcome.ts';

/**
 * Whether a write that failed may have happened. A status in the 400s is clear, except 408: the upstream may have read it. So are 307
 * and 308, which have the client send the same request elsewhere (RFC 9110, sections 15.4.8 and 15.4.9); 303 comes after a success.
 */
export function mayHaveHappened(failure: UpstreamFailure, sent: boolean): boolean {
  if (failure.kind === 'no-answer') return sent;
  if (failure.kind === 'unreadable') return true;
  return failure.kind === 'failed' && !isClear(failure.status);
}

function isClear(status: number): boolean {
  return (status >= 400 && status < 500 && status !== 408) || status === 307 || status === 308;
}

/**
 * Returns the error of a write that may have happened.
 *
 * @param status that of a response which was not clear; undefined where there was none.
 * @param advice what may have happened, and how to find out.
 */
export function outcomeUnknownError(status: number | undefined, advice: string): PetqlError {
  return new PetqlError('OUTCOME_UNKNOWN', `The pet API gave no clear response, ${advice}`, {
    details: status === undefined ? {} : { upstream: { status } },
  });
}
