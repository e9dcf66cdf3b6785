/**
 * JSON that keeps every digit of an int64, on the language's own "JSON.parse source text access"
 * (https://github.com/tc39/proposal-json-parse-with-source, in V8 since 11.4).
 */

declare global {
  // TypeScript's library does not know the proposal yet.
  interface JSON {
    rawJSON(text: string): object;
  }
}

/**
 * Parses JSON; an integer that a double cannot hold exactly becomes a bigint, as far as an int64 reaches: 20 characters
 * at most, since a megabyte of digits would cost a big conversion.
 *
 * @throws SyntaxError when the text is not JSON.
 */
export function parseLosslessJson(text: string): unknown {
  // A function that looks at each value makes the parser several times slower. An integer of fewer digits is exact anyway.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown);
}

/** A bare JSON number with exactly these digits, for use inside JSON.stringify. */
export function bareNumber(digits: string): object {
  return JSON.rawJSON(digits);
}

function keepDigits(_key: string, value: unknown, context: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const { source = '' } = context;
  return source.length <= 20 && /^-?\d+$/.test(source) ? BigInt(source) : value;
}
