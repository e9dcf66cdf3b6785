import { PetqlError } from '../errors.ts';

const LONGEST_KEY = 512;

/**
 * The API key of `Authorization: Bearer <API_KEY>` (pet-api.md, "Authentication"). Two Authorization headers arrive
 * here joined by a comma and a space, and are refused like every other value with a space in it.
 *
 * @returns the key, or the UNAUTHENTICATED error of a header that is missing or malformed. The error never repeats it.
 */
export function readApiKey(authorization: string | null): string | PetqlError {
  if (authorization === null || authorization === '') {
    return unauthenticated('This needs an API key: send it as "Authorization: Bearer <API_KEY>".');
  }
  const key = /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1];
  if (key === undefined) {
    return unauthenticated(
      'The Authorization header is malformed: expected "Bearer", a space and one API key without spaces.',
    );
  }
  if (key.length > LONGEST_KEY) {
    return unauthenticated(`The API key is too long: expected at most ${LONGEST_KEY} characters, got ${key.length}.`);
  }
  return key;
}

function unauthenticated(message: string): PetqlError {
  return new PetqlError('UNAUTHENTICATED', message, {
    httpStatus: 401,
    httpHeaders: { 'www-authenticate': 'Bearer' },
  });
}
