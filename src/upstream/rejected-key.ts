import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';

const FIRST_MS = 10_000;
const MAX_MS = 600_000;

export type RejectedKey = ReturnType<typeof createRejectedKey>;

/** A negative cache of 401: a client with a rejected key must not hammer the upstream. */
export function createRejectedKey({ elapsed }: Pick<Clock, 'elapsed'>) {
  let untilMs = -Infinity;
  let nextMs = FIRST_MS;
  return {
    /** The error of every read and write while the key is rejected without a call; undefined when it may be tried. */
    error(): PetqlError | undefined {
      const remainingMs = untilMs - elapsed();
      if (remainingMs <= 0) return undefined;
      return new PetqlError(
        'UNAUTHENTICATED',
        `The pet API does not accept this API key. Check the key; petql tries it again in ${Math.ceil(remainingMs / 1000)} s.`,
        { httpStatus: 401, httpHeaders: { 'www-authenticate': 'Bearer error="invalid_token"' } },
      );
    },
    /** The upstream answered 401: no call for 10 s, doubled at each further rejection up to 10 minutes. */
    reject() {
      // Rejections of concurrent calls count as one.
      if (elapsed() < untilMs) return;
      untilMs = elapsed() + nextMs;
      nextMs = Math.min(nextMs * 2, MAX_MS);
    },
    /** The upstream accepted the key. */
    accept() {
      untilMs = -Infinity;
      nextMs = FIRST_MS;
    },
  };
}
