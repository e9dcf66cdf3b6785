/** The value that this share of the values does not exceed; NaN counts as no value, and NaN is that of none. */
export function percentile(values: Iterable<number>, share: number): number {
  const sorted = Float64Array.from([...values].filter((value) => !Number.isNaN(value))).toSorted();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN;
}
