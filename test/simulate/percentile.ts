/** The value that so large a share of them does not exceed; NaN counts as no value. */
export function percentile(values: Iterable<number>, share: number): number {
  const sorted = Float64Array.from([...values].filter((value) => !Number.isNaN(value))).toSorted();
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? NaN;
}
