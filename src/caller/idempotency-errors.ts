import { PetqlError } from '../errors.ts';

/** Who comes back sooner finds nothing changed. */
const SOONEST_MS = 1_000;

/** What was sent could not be written down, so nothing was sent. */
export function unavailableError(nowMs: number): PetqlError {
  return new PetqlError(
    'IDEMPOTENCY_UNAVAILABLE',
    'Nothing was sent: what comes of it cannot be kept at the moment, so a repetition might add the animal twice. ' +
      'Repeat it with the same idempotencyKey.',
    { details: comeBack(SOONEST_MS, nowMs) },
  );
}

/** @param freeInMs when there is a place again. */
export function fullError(freeInMs: number, nowMs: number): PetqlError {
  return new PetqlError(
    'IDEMPOTENCY_UNAVAILABLE',
    'Nothing was sent: as many creations with an idempotencyKey are kept as there is room for, each for a day. ' +
      'Repeat it with the same idempotencyKey later.',
    { details: comeBack(freeInMs, nowMs) },
  );
}

/** The deadline came while somebody else's submit was under way. */
export function pendingError(nowMs: number): PetqlError {
  return new PetqlError(
    'OUTCOME_PENDING',
    'An earlier submit with this idempotencyKey is still under way, and nothing was sent for this one. ' +
      'Repeat it with the same idempotencyKey to learn what came of it.',
    { details: comeBack(SOONEST_MS, nowMs) },
  );
}

export function otherInputError(): PetqlError {
  return new PetqlError(
    'BAD_USER_INPUT',
    'input.idempotencyKey: expected a key of its own for each animal; this one came with another input within a day.',
    { details: { argument: 'input.idempotencyKey' } },
  );
}

function comeBack(inMs: number, nowMs: number): Record<string, unknown> {
  const retryAfterMs = Math.max(SOONEST_MS, inMs);
  return { retryAfterMs, retryAt: new Date(nowMs + retryAfterMs).toISOString() };
}
