import type { Clock } from '../clock.ts';

const REMEMBERED_MINUTES = 10;
const MINUTE_MS = 60_000;
/** Dates that differ by more than this, and by more than their way explains, are of two clocks. */
const NEAR_MS = 10_000;
/** So many of the latest Dates say which clock is right, where they are of several. */
const VOTES = 20;
/** What it counts for, in Dates, that our own clock says the same. */
const OWN_VOTES = VOTES / 2;

/** The upstream's clock, as its Date headers show it. */
export interface UpstreamClock {
  /** A response with this Date came just now, `tookMs` after its request had been sent. */
  observe(dateMs: number, tookMs: number): void;
  /** The upstream's time; never ahead of it, a little behind. Undefined until a Date was seen in the last ten minutes. */
  now(): number | undefined;
}

/** By how much our clock is ahead of what was dated: somewhere between the two. */
interface Difference {
  readonly leastMs: number;
  readonly mostMs: number;
}

interface Vote extends Difference {
  readonly atMs: number;
}

/**
 * Our clock and the upstream's may differ by any amount, and a Date is a whole second that was cut off and then travelled.
 * The smallest difference of the last ten minutes has lost the least on its way.
 *
 * Of several backends, one may have a clock that is wrong, and its answers come among the others. So a Date that is far from
 * what is known is not believed before more of the latest say so than say what is known; the first of all is, since there is
 * nothing better. Our own clock has a say, too: two that are wrong would hardly be so by the same amount.
 */
export function createUpstreamClock({ elapsed, now }: Clock): UpstreamClock {
  /** The smallest difference of each of the last minutes. */
  const differences = new Map<number, number>();
  /** The latest, with those that are not believed. */
  let votes: Vote[] = [];

  return {
    observe(dateMs, tookMs) {
      const atMs = elapsed();
      const mostMs = atMs - dateMs;
      // With the whole way and the whole second taken off.
      const seen: Vote = { leastMs: mostMs - tookMs - 1000, mostMs, atMs };
      votes = votes.filter((vote) => vote.atMs > atMs - REMEMBERED_MINUTES * MINUTE_MS).slice(1 - VOTES);
      votes.push(seen);
      const known = smallest();
      if (known === undefined) return note(mostMs);
      const before: Difference = { leastMs: known, mostMs: known };
      const rival = mostLikely(votes.filter((vote) => !isNear(vote, before)));
      if (rival && weight(rival) > weight(before)) {
        differences.clear();
        return note(Math.min(...votes.filter((vote) => isNear(vote, rival)).map((vote) => vote.mostMs)));
      }
      if (!isNear(seen, before)) return;
      // It is surely later than what is known: the upstream's clock was set back a little, and what was seen before is worth
      // nothing.
      if (seen.leastMs > known) differences.clear();
      note(mostMs);
    },
    now() {
      const known = smallest();
      return known === undefined ? undefined : elapsed() - known;
    },
  };

  function note(difference: number): void {
    const minute = Math.floor(elapsed() / MINUTE_MS);
    differences.set(minute, Math.min(difference, differences.get(minute) ?? Infinity));
  }

  function mostLikely(some: readonly Vote[]): Vote | undefined {
    return some.reduce<Vote | undefined>(
      (best, vote) => (best && weight(best) >= weight(vote) ? best : vote),
      undefined,
    );
  }

  /** How many of the latest Dates speak for it. */
  function weight(difference: Difference): number {
    const own = elapsed() - now();
    const ownVotes = isNear(difference, { leastMs: own, mostMs: own }) ? OWN_VOTES : 0;
    return votes.filter((vote) => isNear(vote, difference)).length + ownVotes;
  }

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

function isNear(one: Difference, other: Difference): boolean {
  return one.leastMs - NEAR_MS <= other.mostMs && other.leastMs - NEAR_MS <= one.mostMs;
}
