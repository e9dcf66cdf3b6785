import type { Clock } from '../clock.ts';

const REMEMBERED_MINUTES = 10;
const MINUTE_MS = 60_000;
/** A Date that differs by more than this is taken for a slip of somebody on its way, until a second one agrees. */
const FAR_MS = 86_400_000;

/** The upstream's clock, as its Date headers show it. */
export interface UpstreamClock {
  /** A response with this Date came just now, `tookMs` after its request had been sent. */
  observe(dateMs: number, tookMs: number): void;
  /** The upstream's time; never ahead of it, a little behind. Undefined until a Date was seen in the last ten minutes. */
  now(): number | undefined;
}

/**
 * Our clock and the upstream's may differ by any amount, and a Date is a whole second that was cut off and then travelled.
 * The smallest difference of the last ten minutes has lost the least on its way. A single Date that is more than a day away
 * from what is known and from our clock is not believed; the first of all is, since there is nothing better.
 */
export function createUpstreamClock({ elapsed, now }: Clock): UpstreamClock {
  /** The smallest difference of each of the last minutes. */
  const differences = new Map<number, number>();
  /** The last difference, where that was not believed. */
  let doubted: number | undefined;

  return {
    observe(dateMs, tookMs) {
      const difference = elapsed() - dateMs;
      const known = smallest();
      const isDoubtful = known !== undefined && isFar(difference, known) && isFar(dateMs, now());
      if (isDoubtful && (doubted === undefined || isFar(difference, doubted))) {
        doubted = difference;
        return;
      }
      doubted = undefined;
      // Even with the whole way and the whole second taken off, it is later than what is known: the upstream's clock was
      // set back, and what was seen before is worth nothing.
      if (known !== undefined && difference - tookMs - 1000 > known) differences.clear();
      const minute = Math.floor(elapsed() / MINUTE_MS);
      differences.set(minute, Math.min(difference, differences.get(minute) ?? Infinity));
    },
    now() {
      const known = smallest();
      return known === undefined ? undefined : elapsed() - known;
    },
  };

  function smallest(): number | undefined {
    const oldest = Math.floor(elapsed() / MINUTE_MS) - REMEMBERED_MINUTES;
    let found: number | undefined;
    for (const [minute, difference] of differences) {
      if (minute <= oldest) differences.delete(minute);
      else found = Math.min(difference, found ?? Infinity);
    }
    return found;
  }
}

function isFar(oneMs: number, otherMs: number): boolean {
  return Math.abs(oneMs - otherMs) > FAR_MS;
}
