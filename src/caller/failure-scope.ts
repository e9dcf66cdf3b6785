import type { UpstreamFailure } from '../upstream/pet-api.ts';

/**
 * What a failed read says of other calls:
 * - `passing`: it may go well a moment later, and whatever else is asked now may fail in the same way.
 * - `service`: it comes the same again, whatever is asked.
 * - `call`: it is about this call, and others may go well.
 */
export type FailureScope = 'call' | 'passing' | 'service';

export function failureScope(failure: UpstreamFailure): FailureScope {
  switch (failure.kind) {
    case 'no-answer':
      return failure.reason === 'too-large' ? 'call' : 'passing';
    case 'failed':
      if (failure.status >= 500 && failure.status !== 501) return 'passing';
      return failure.status >= 400 && failure.status < 500 ? 'call' : 'service';
    // One animal that breaks the contract spoils each listing that shows it. What is no JSON is of somebody else's making.
    case 'unreadable':
      return failure.foreign ? 'service' : 'call';
    default:
      return 'call';
  }
}
