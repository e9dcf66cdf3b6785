import { PetqlError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';

/** A retry before this finds nothing changed. */
const MIN_RETRY_MS = 1_000;

/** The outcome could not be stored, so nothing was sent. */
export function unavailableError(nowMs: number): PetqlError {
  const why = 'The idempotency store is unavailable, and nothing was sent.';
  return retryableError('IDEMPOTENCY_UNAVAILABLE', why, MIN_RETRY_MS, nowMs);
}

/** @param freeInMs when an entry expires. */
export function fullError(freeInMs: number, nowMs: number): PetqlError {
  const why = 'The idempotency store is full (entries expire after 24 h), and nothing was sent.';
  return retryableError('IDEMPOTENCY_UNAVAILABLE', why, freeInMs, nowMs);
}

/** The deadline came while another submit was in flight. */
export function pendingError(nowMs: number): PetqlError {
  const why = 'An earlier submit with this idempotencyKey is still in flight, and nothing was sent for this one.';
  return retryableError('OUTCOME_PENDING', why, MIN_RETRY_MS, nowMs);
}

export function otherInputError(): PetqlError {
  return new PetqlError(
    'BAD_USER_INPUT',
    'input.idempotencyKey: this key came with another input in the last 24 h. Use a new key for each pet.',
    { details: { argument: 'input.idempotencyKey' } },
  );
}

function retryableError(code: ErrorCode, why: string, inMs: number, nowMs: number): PetqlError {
  const retryAfterMs = Math.max(MIN_RETRY_MS, inMs);
  const retryAt = new Date(nowMs + retryAfterMs).toISOString();
  return new PetqlError(code, `${why} Retry with the same idempotencyKey.`, { details: { retryAfterMs, retryAt } });
}
