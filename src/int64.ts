const LOWEST = -(2n ** 63n);
const HIGHEST = 2n ** 63n - 1n;

/**
 * An int64 as canonical decimal digits, "-9223372036854775808" to "9223372036854775807".
 * A string, since a JavaScript number is exact only up to 2^53.
 */
export type Int64 = string & { readonly __int64: never };

/** Reads canonical decimal digits; undefined for anything else ("", "007", "+1", "1e3", 2^63). */
export function parseInt64(text: string): Int64 | undefined {
  // 20 characters hold every int64; without this bound, a megabyte of digits would cost a big conversion.
  if (text.length > 20 || !/^(?:0|-?[1-9]\d*)$/.test(text)) return undefined;
  // Eighteen digits are less than 2^63, whatever they are.
  return text.length <= 18 ? (text as Int64) : int64FromBigInt(BigInt(text));
}

/** The same for a bigint; undefined when it is out of range. */
export function int64FromBigInt(value: bigint): Int64 | undefined {
  return value >= LOWEST && value <= HIGHEST ? (String(value) as Int64) : undefined;
}
