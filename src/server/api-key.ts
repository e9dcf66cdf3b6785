import { PetqlError } from '../errors.ts';
import type { ServerKey } from '../gateway-options.ts';
import type { Log } from '../log.ts';
import { typeName } from '../type-name.ts';

const LONGEST_KEY = 512;

/**
 * The API key of `Authorization: Bearer <API_KEY>` (pet-api.md, "Authentication"). Two Authorization headers are refused
 * like every other malformed value.
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
  return keyOfAllowedLength(key);
}

/**
 * An API key that did not come in a header: from the server itself, or from whoever embeds petql.
 *
 * @returns the key, or the UNAUTHENTICATED error of one that is missing or malformed. The error never repeats it.
 */
export function givenApiKey(key: string | null | undefined): string | PetqlError {
  if (key === undefined || key === null || key === '')
    return unauthenticated('This needs an API key, and the server has none for it.');
  if (!/^[\x21-\x7e]+$/.test(key)) {
    return unauthenticated('The API key is malformed: expected visible ASCII characters without spaces.');
  }
  return keyOfAllowedLength(key);
}

/**
 * The server's key, where a function finds it: what is no string counts as none, and the log says so. A list or a Buffer
 * would be sent as the text that it makes, and be another caller each time, with a plan of its own.
 */
export function checkedServerKey(serverKey: ServerKey, log: Log): ServerKey {
  if (typeof serverKey === 'string') return serverKey;
  return async (request) => {
    const found: unknown = await serverKey(request);
    if (typeof found === 'string') return found;
    if (found !== undefined && found !== null) {
      log.error({ got: typeName(found) }, 'petApiKey: expected its function to find a string, null or undefined');
    }
    return undefined;
  };
}

function keyOfAllowedLength(key: string): string | PetqlError {
  if (key.length <= LONGEST_KEY) return key;
  return unauthenticated(`The API key is too long: expected at most ${LONGEST_KEY} characters, got ${key.length}.`);
}

function unauthenticated(message: string): PetqlError {
  return new PetqlError('UNAUTHENTICATED', message, {
    httpStatus: 401,
    httpHeaders: { 'www-authenticate': 'Bearer' },
  });
}
