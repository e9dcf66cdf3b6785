/**
 * Returns the seed in FUZZ_SEED, or else `fallback`. By default it differs from run to run, but in continuous integration, where a
 * failure has to be the fault of the change.
 */
export function chooseSeed(fallback = process.env['CI'] ? 1 : Date.now() % 1_000_000): number {
  return Number(process.env['FUZZ_SEED'] ?? fallback);
}

/** All cases in `verify throttle`, and every `nth` of them in `npm test`. */
export function chooseCases<Case>(cases: readonly Case[], nth: number): Case[] {
  return cases.filter((_, index) => process.env['PETQL_ALL_CASES'] !== undefined || index % nth === 0);
}
