import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';

const FIRST_MS = 10_000;
const LONGEST_MS = 600_000;

/** Remembers that the upstream refused a key, so that a stray client cannot hammer the upstream with it. */
export interface RefusedKey {
  /** How long the key is still refused without a call, in milliseconds; 0 when it may be tried. */
  remainingMs(): number;
  /** What whoever asks with it meanwhile is told. */
  error(): PetqlError;
  /** The upstream answered 401: 10 s without a call, doubled at each further refusal up to 10 minutes. */
  refuse(): void;
  /** The upstream took the key. */
  accept(): void;
}

export function createRefusedKey({ elapsed }: Pick<Clock, 'elapsed'>): RefusedKey {
  let untilMs = -Infinity;
  let nextMs = FIRST_MS;
  const remainingMs = () => Math.max(0, untilMs - elapsed());
  return {
    remainingMs,
    error: () =>
      new PetqlError(
        'UNAUTHENTICATED',
        `The pet adoption service does not accept this API key; it is tried again in ${Math.ceil(remainingMs() / 1000)} s.`,
        { httpStatus: 401, httpHeaders: { 'www-authenticate': 'Bearer error="invalid_token"' } },
      ),
    refuse() {
      // Calls that were under way together are one refusal.
      if (remainingMs() > 0) return;
      untilMs = elapsed() + nextMs;
      nextMs = Math.min(nextMs * 2, LONGEST_MS);
    },
    accept() {
      untilMs = -Infinity;
      nextMs = FIRST_MS;
    },
  };
}
