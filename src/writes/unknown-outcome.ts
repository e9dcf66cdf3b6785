import { PetqlError } from '../errors.ts';
import type { UpstreamFailure } from '../upstream/outcome.ts';

/** Whether a write that failed may have happened. A status in the 400s is clear, except 408: the upstream may have read it. */
export function mayHaveHappened(failure: UpstreamFailure, sent: boolean): boolean {
  if (failure.kind === 'no-answer') return sent;
  if (failure.kind === 'unreadable') return true;
  return failure.kind === 'failed' && (failure.status < 400 || failure.status === 408 || failure.status >= 500);
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
