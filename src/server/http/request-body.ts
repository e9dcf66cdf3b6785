import { isUtf8 } from 'node:buffer';
import type { GraphQLError } from 'graphql';
import { badRequest, graphqlError } from '../errors.ts';
import { limitExceeded } from '../plugins/limit-exceeded.ts';

/** The text of a body, or the error of one that cannot be read. */
export type RequestBody = string | GraphQLError;

/** Collects a body from its chunks, and none of them once it is too long. */
export function createBodyReader(maxBytes: number) {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  return {
    /** Returns whether the body is within its limit. */
    add(chunk: Uint8Array): boolean {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else chunks.length = 0;
      return bytes <= maxBytes;
    },
    body(): RequestBody {
      if (bytes > maxBytes) return bodyTooLong(maxBytes);
      const whole = Buffer.concat(chunks, bytes);
      // Decoding would replace bytes, and create a pet of another name.
      return isUtf8(whole) ? whole.toString() : badRequest(NOT_UTF8, 400);
    },
  };
}

/** Returns a value that a program gives as JSON, such as the body that a body parser has read. */
export function jsonBody(value: unknown, maxBytes: number): RequestBody {
  try {
    const text = JSON.stringify(value, bigintAsText) ?? '';
    return Buffer.byteLength(text) > maxBytes ? bodyTooLong(maxBytes) : text;
  } catch {
    return badRequest(NO_JSON, 400);
  }
}

export function bodyTooLong(maxBytes: number): GraphQLError {
  return graphqlError(limitExceeded('bodyBytes', maxBytes, undefined, 413));
}

const NOT_UTF8 = 'Expected a body in UTF-8 without a Content-Encoding.';
const NO_JSON = 'Expected variables that JSON can hold: no circular references, and no thousands of levels.';

/** Ids may be bigints, which JSON has no numbers for. */
function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
