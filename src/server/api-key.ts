import { PetqlError } from '../common/errors.ts';
import { MAX_KEY_LENGTH, isApiKey } from '../settings/setting-shapes.ts';

const BEARER = /^Bearer +(\S+)$/i;
const NO_HEADER = 'This needs an API key: send it as "Authorization: Bearer <API_KEY>".';
const MALFORMED_HEADER =
  'The Authorization header is malformed: expected "Bearer", a space and one API key without spaces.';

/**
 * The API key of `Authorization: Bearer <API_KEY>` (pet-api.md, "Authentication"). Two Authorization headers are malformed.
 *
 * @returns the key, or the UNAUTHENTICATED error of a header that is missing or malformed. The error never repeats it.
 */
export function readApiKey(authorization: string | undefined): string | PetqlError {
  if (!authorization) return unauthenticated(NO_HEADER);
  const key = BEARER.exec(authorization)?.[1];
  return key === undefined ? unauthenticated(MALFORMED_HEADER) : givenApiKey(key);
}

/** The same for a key that did not come in a header: from the server itself, or from the program that embeds petql. */
export function givenApiKey(key: string | null | undefined): string | PetqlError {
  if (!key)
    return unauthenticated('This request has no API key. Its server must set petApiKey or pass an apiKey to execute.');
  const expected = `expected at most ${MAX_KEY_LENGTH} visible ASCII characters without spaces.`;
  return isApiKey(key) ? key : unauthenticated(`The API key is malformed: ${expected}`);
}

function unauthenticated(message: string): PetqlError {
  return new PetqlError('UNAUTHENTICATED', message, { httpStatus: 401, httpHeaders: { 'www-authenticate': 'Bearer' } });
}
