/**
 * An int64 as canonical decimal digits, "-9223372036854775808" to "9223372036854775807".
 * A string, since a JavaScript number is exact only up to 2^53.
 */
export type Int64 = string & { readonly __int64: never };

/** Reads canonical decimal digits; undefined for anything else ("", "007", "+1", "1e3", 2^63). */
export function parseInt64(text: string): Int64 | undefined {
  // 20 characters hold every int64; without this bound, a megabyte of digits would cost a big conversion.
  if (text.length > 20 || !/^(?:0|-?[1-9]\d*)$/.test(text)) return undefined;
  return int64FromBigInt(BigInt(text));
}

/** Reads what `parseLosslessJson` makes of an integer; undefined for anything else. */
export function int64FromJson(value: unknown): Int64 | undefined {
  if (typeof value === 'bigint') return int64FromBigInt(value);
  return Number.isSafeInteger(value) ? (String(value) as Int64) : undefined;
}

/** Returns undefined for a bigint out of range. */
export function int64FromBigInt(value: bigint): Int64 | undefined {
  return BigInt.asIntN(64, value) === value ? (String(value) as Int64) : undefined;
}
