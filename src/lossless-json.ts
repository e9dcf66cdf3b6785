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

/** There is a large number in a text of more values than may be looked at one by one. */
export class TooManyValues extends Error {
  override readonly name = 'TooManyValues';

  constructor(most: number) {
    super(`at most ${most} values`);
  }
}

/**
 * Parses JSON; an integer that a double cannot hold exactly becomes a bigint, as far as an int64 reaches: 20 characters
 * at most, since a megabyte of digits would cost a big conversion. What a double would make an integer of, and is none,
 * becomes NaN.
 *
 * @param mostValues in a text with large numbers, which cost a call each: a megabyte of values would take half a second.
 * @throws SyntaxError when the text is not JSON, and TooManyValues.
 */
export function parseLosslessJson(text: string, mostValues = Infinity): unknown {
  // A function that looks at each value makes the parser several times slower. What has fewer digits is exact anyway.
  if (!/\d[\d.]{15}/.test(text)) return JSON.parse(text);
  let values = 0;
  return JSON.parse(text, ((_key, value, context) => {
    if (++values > mostValues) throw new TooManyValues(mostValues);
    return keepDigits(value, context);
  }) as Reviver as (key: string, value: unknown) => unknown);
}

/** What TypeScript's library does not know yet either. */
type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

/** A bare JSON number with exactly these digits, for use inside JSON.stringify. */
export function bareNumber(digits: string): object {
  return JSON.rawJSON(digits);
}

function keepDigits(value: unknown, { source = '' }: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || source.length < 16) return value;
  if (/^-?\d+$/.test(source)) return Number.isSafeInteger(value) || source.length > 20 ? value : BigInt(source);
  return Number.isInteger(value) && !isInteger(source) ? NaN : value;
}

/** Of a number with a point or an exponent. */
function isInteger(source: string): boolean {
  const [mantissa = '', exponent = '0'] = source.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = whole + fraction;
  let zeros = 0;
  while (digits.at(-1 - zeros) === '0') zeros += 1;
  return zeros + Number(exponent) >= fraction.length;
}
