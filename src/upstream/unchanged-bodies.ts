import type { Decoded } from './wire.ts';

/** What bodies say, as it was read last: one that has not changed since is not read again. */
export interface UnchangedBodies<T> {
  /** @param name of what was asked for; few different ones. */
  read(name: string, body: Buffer): Decoded<T>;
}

/** Longer ones are not kept: a listing of 100 animals has some 10 KiB. */
const MOST_BYTES = 65_536;

/**
 * A store is asked far more often than it changes, and comparing bytes costs next to nothing beside reading them. Nothing
 * passes from one API key to another: a body alone decides what is read from it, and only whoever was sent one can ask.
 * What is read comes as the same object again, so it must never be changed.
 */
export function createUnchangedBodies<T>(decode: (body: Buffer, name: string) => Decoded<T>): UnchangedBodies<T> {
  const latest = new Map<string, { readonly body: Buffer; readonly decoded: Decoded<T> }>();
  return {
    read(name, body) {
      const known = latest.get(name);
      if (known?.body.equals(body)) return known.decoded;
      const decoded = decode(body, name);
      // A copy: what a transport hands over may be a small part of a large buffer.
      if (decoded.ok && body.length <= MOST_BYTES) latest.set(name, { body: Buffer.from(body), decoded });
      return decoded;
    },
  };
}
