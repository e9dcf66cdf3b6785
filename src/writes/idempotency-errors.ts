import { PetqlError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';

/** A retry before this finds nothing changed. */
const RETRY_AFTER_MS = 1_000;

/** The outcome could not be stored, so nothing was sent. */
export function unavailableError(nowMs: number): PetqlError {
  const why = 'The idempotency store is unavailable, and nothing was sent.';
  return retryableError('IDEMPOTENCY_UNAVAILABLE', why, nowMs);
}

/** The deadline came while another submit was in flight. */
export function pendingError(nowMs: number): PetqlError {
  const why = 'An earlier submit with this idempotencyKey is still in flight, and nothing was sent for this one.';
  return retryableError('OUTCOME_PENDING', why, nowMs);
}

export function otherInputError(): PetqlError {
  return new PetqlError(
    'BAD_USER_INPUT',
    'input.idempotencyKey: this key came with another input in the last 24 h. Use a new key for each pet.',
    { details: { argument: 'input.idempotencyKey' } },
  );
}

function retryableError(code: ErrorCode, why: string, nowMs: number): PetqlError {
  const retryAt = new Date(nowMs + RETRY_AFTER_MS).toISOString();
  return new PetqlError(code, `${why} Retry with the same idempotencyKey.`, {
    details: { retryAfterMs: RETRY_AFTER_MS, retryAt },
  });
}
