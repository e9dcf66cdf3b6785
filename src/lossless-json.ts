/**
 * JSON that keeps every digit of an int64, on the language's own "JSON.parse source text access"
 * (https://github.com/tc39/proposal-json-parse-with-source, in V8 since 11.4).
 */

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

declare global {
  // TypeScript has no types for the proposal yet.
  interface JSON {
    parse(text: string, reviver: Reviver): unknown;
    rawJSON(text: string): object;
  }
}

/**
 * Parses JSON. An integer that a double cannot hold exactly becomes a bigint, up to the 20 characters of an int64. A number
 * that only a double's rounding makes an integer, such as 9007199254740992.6, becomes NaN.
 *
 * @throws SyntaxError when the text is not JSON.
 */
export function parseLosslessJson(text: string): unknown {
  // A reviver makes the parser several times slower, and numbers of fewer digits are exact.
  return /\d[\d.]{15}/.test(text) ? JSON.parse(text, keepDigits) : (JSON.parse(text) as unknown);
}

/** Returns a bare JSON number with exactly these digits, for use inside JSON.stringify. */
export function bareNumber(digits: string): object {
  return JSON.rawJSON(digits);
}

const keepDigits: Reviver = (_key, value, { source = '' }) => {
  if (typeof value !== 'number' || source.length < 16) return value;

  if (/^-?\d+$/.test(source)) {
    const isDouble = Number.isSafeInteger(value) || source.length > 20;
    return isDouble ? value : BigInt(source);
  }
  return Number.isInteger(value) && !isInteger(source) ? NaN : value;
};

/** Whether a number with a point or an exponent is an integer. */
function isInteger(source: string): boolean {
  const [mantissa = '', exponent = '0'] = source.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const trailingZeros = /0*$/.exec(whole + fraction)?.[0].length ?? 0;
  return trailingZeros + Number(exponent) >= fraction.length;
}
