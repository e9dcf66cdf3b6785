import { PetqlError } from '../errors.ts';

const MAX_KEY_LENGTH = 512;

/**
 * The API key of `Authorization: Bearer <API_KEY>` (pet-api.md, "Authentication"). Two Authorization headers are malformed.
 *
 * @returns the key, or the UNAUTHENTICATED error of a header that is missing or malformed. The error never repeats it.
 */
export function readApiKey(authorization: string | undefined): string | PetqlError {
  if (!authorization) {
    return unauthenticated('This needs an API key: send it as "Authorization: Bearer <API_KEY>".');
  }
  const key = /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1];
  if (key !== undefined) return keyOfAllowedLength(key);
  const expected = 'expected "Bearer", a space and one API key without spaces.';
  return unauthenticated(`The Authorization header is malformed: ${expected}`);
}

/**
 * An API key that did not come in a header: from the server itself, or from the program that embeds petql.
 *
 * @returns the key, or the UNAUTHENTICATED error of one that is missing or malformed. The error never repeats it.
 */
export function givenApiKey(key: string | null | undefined): string | PetqlError {
  if (!key) return unauthenticated('This needs an API key, and the server has none for it.');
  if (/^[\x21-\x7e]+$/.test(key)) return keyOfAllowedLength(key);
  return unauthenticated('The API key is malformed: expected visible ASCII characters without spaces.');
}

function keyOfAllowedLength(key: string): string | PetqlError {
  if (key.length <= MAX_KEY_LENGTH) return key;
  return unauthenticated(`The API key is too long: expected at most ${MAX_KEY_LENGTH} characters, got ${key.length}.`);
}

function unauthenticated(message: string): PetqlError {
  return new PetqlError('UNAUTHENTICATED', message, {
    httpStatus: 401,
    httpHeaders: { 'www-authenticate': 'Bearer' },
  });
}
