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
 * Parses JSON. An integer that a double cannot hold exactly becomes a bigint, up to the 19 digits of an int64, also where it is
 * written with a point or an exponent. A number that only a double's rounding makes an integer, such as 9007199254740992.6 or
 * 1e-400, becomes NaN.
 *
 * @throws SyntaxError when the text is not JSON.
 */
export function parseLosslessJson(text: string): unknown {
  // A reviver makes the parser several times slower, and numbers of fewer digits without an exponent are exact.
  return /\d[\d.]{15}|\d[eE]/.test(text) ? JSON.parse(text, keepDigits) : (JSON.parse(text) as unknown);
}

/** Returns a bare JSON number with exactly these digits, for use inside JSON.stringify. */
export function bareNumber(digits: string): object {
  return JSON.rawJSON(digits);
}

const NUMBER = /^(?<sign>-?)(?<whole>\d+)(?:\.(?<fraction>\d+))?(?:[eE](?<exponent>[+-]?\d+))?$/;
/** That of an int64. */
const MAX_DIGITS = 19;

const keepDigits: Reviver = (_key, value, { source = '' }) => {
  if (typeof value !== 'number' || /^-?\d{1,15}$/.test(source)) return value;

  const { sign = '', whole = '', fraction = '', exponent = '0' } = NUMBER.exec(source)?.groups ?? {};
  const digits = whole + fraction;
  const [from, to] = significantPart(digits);
  if (from === to) return value;

  const zeros = digits.length - to + Number(exponent) - fraction.length;
  if (zeros < 0) return Number.isInteger(value) ? NaN : value;
  if (to - from + zeros > MAX_DIGITS || Number.isSafeInteger(value)) return value;
  return BigInt(sign + digits.slice(from, to) + '0'.repeat(zeros));
};

/** Returns where the digits begin and end without the zeros around them. A loop, since `/0*$/` tries again at each zero. */
function significantPart(digits: string): readonly [from: number, to: number] {
  let from = 0;
  let to = digits.length;
  while (to > 0 && digits[to - 1] === '0') to -= 1;
  while (from < to && digits[from] === '0') from += 1;
  return [from, to];
}
