import fc from 'fast-check';
import { rowOf } from '../../support/tally.ts';
import type { Row } from '../../support/tally.ts';
import { atLength, longTexts } from './long-texts.ts';
import { openPlaces } from './places.ts';
import type { Place } from './places.ts';

/** For an operation without a text, on a busy machine. */
const BASE_MS = 100;
/** Some ten times what the slowest parser takes: one that is quadratic takes a hundred times as long at these lengths. */
const MS_PER_BYTE = 0.002;
/** Another process may have the machine for a while. */
const TRIES = 3;

/** Has each parser read long texts, and measures whether the time grows with the length alone. */
export async function fuzzWorkTime(
  promise: string,
  { seed, maxMs }: { readonly seed: number; readonly maxMs: number },
): Promise<Row[]> {
  await using resources = new AsyncDisposableStack();
  const places = await openPlaces(resources);
  let slowest = { share: 0, name: '' };
  const property = fc.asyncProperty(fc.constantFrom(...places), longTexts, async (place, text) => {
    // The first length shows a parser that is far too slow before it takes minutes.
    for (const bytes of [place.maxBytes / 8, place.maxBytes]) {
      const leastMs = await measure(place, atLength(text, bytes), boundMs(bytes));
      const share = leastMs / boundMs(bytes);
      if (share > slowest.share) slowest = { share, name: place.name };
      if (share > 1) throw new Error(`${place.name}: ${Math.round(leastMs)} ms for ${bytes} bytes`);
    }
  });
  const details = await fc.check(property, {
    seed,
    numRuns: Number.MAX_SAFE_INTEGER,
    // Each case that fails takes long.
    endOnFailure: true,
    interruptAfterTimeLimit: maxMs,
  });
  const problems = details.failed
    ? [`${String(details.errorInstance)}, for ${JSON.stringify(details.counterexample?.[1])}`]
    : [];
  const measured = `${places.length} places; at most ${Math.round(100 * slowest.share)} % of the bound, ${slowest.name}`;
  return [rowOf({ promise, looked: details.numRuns, problems, measured, figures: slowest })];
}

/** Returns the least time of some tries, where the first is not well within the bound. */
async function measure(place: Place, text: string, maxMs: number): Promise<number> {
  let leastMs = Infinity;
  for (let tries = 0; tries < TRIES && leastMs > maxMs / 4; tries += 1) {
    const startedMs = performance.now();
    await place.read(text);
    leastMs = Math.min(leastMs, performance.now() - startedMs);
  }
  return leastMs;
}

function boundMs(bytes: number): number {
  return BASE_MS + bytes * MS_PER_BYTE;
}
