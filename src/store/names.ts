import { createHmac, hash } from 'node:crypto';

/** Returns the name under which an API key, or a text that begins with one, is stored or shown. It is pure and never fails. */
export type NameOf = (text: string) => string;

/**
 * Returns the names under one pet API: the same API key has another name under another base URL, so that nothing crosses.
 *
 * @param secret makes the names HMACs; without it they are SHA-256 hashes.
 */
export function createNames({ origin, pathname }: URL, secret: string | undefined): NameOf {
  const baseUrl = origin + pathname.replace(/\/+$/, '');
  // Neither URLs nor API keys have spaces.
  return (text) => hashOf(`${baseUrl} ${text}`, secret);
}

/** Returns the fingerprint of the secret, the same for all pet APIs: the hash of a text that is no API key. */
export function fingerprintOf(secret: string | undefined): string {
  return hashOf('nobody has this key', secret);
}

function hashOf(text: string, secret: string | undefined): string {
  const whole =
    secret === undefined
      ? hash('sha256', text, 'base64url')
      : createHmac('sha256', secret).update(text).digest('base64url');
  return whole.slice(0, 32);
}
