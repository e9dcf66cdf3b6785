import type { Clock } from '../clock.ts';
import type { StaleReason } from './reads.ts';

/** What one request has cost, and how old its answers are: `extensions.petql`. */
export interface Usage {
  /** Calls that were made to the upstream for this request. One that answers other requests too counts for one of them. */
  readonly upstreamCalls: number;
  /** Demands that were answered and cost no call of this request's: from memory, or from a call that others paid for. */
  readonly servedWithoutCall: number;
  /** The age of the oldest answer used, in milliseconds, when this was asked for; undefined where none was. */
  readonly oldestAgeMs: number | undefined;
  /** Why the oldest of the answers that are older than asked for is; undefined where none is. */
  readonly staleReason: StaleReason | undefined;
}

export const NO_USAGE: Usage = {
  upstreamCalls: 0,
  servedWithoutCall: 0,
  oldestAgeMs: undefined,
  staleReason: undefined,
};

/** Why a demand cost no call: memory was fresh, a call made for another demand answered it too, or something older had to do. */
export type SavedReason = StaleReason | 'FRESH' | 'SHARED_CALL';

/** How many demands cost no call of their own, by the reason. */
export type SavedCalls = Readonly<Partial<Record<SavedReason, number>>>;

/** Keeps a request's account. */
export interface UsageMeter {
  usage(): Usage;
  saved(): SavedCalls;
  called(): void;
  /**
   * @param asOfMs by `clock.elapsed()`: an answer grows older while the request waits for its others.
   * @param saved why no call was made for it; undefined where one was.
   */
  answered(asOfMs: number, staleReason: StaleReason | undefined, saved: SavedReason | undefined): void;
}

export function createUsageMeter({ elapsed }: Pick<Clock, 'elapsed'>): UsageMeter {
  let upstreamCalls = 0;
  let servedWithoutCall = 0;
  let oldestAsOfMs = Infinity;
  let stalestAsOfMs = Infinity;
  let staleReason: StaleReason | undefined;
  const saved: Partial<Record<SavedReason, number>> = {};
  return {
    usage() {
      const oldestAgeMs = oldestAsOfMs === Infinity ? undefined : Math.max(0, Math.round(elapsed() - oldestAsOfMs));
      return { upstreamCalls, servedWithoutCall, oldestAgeMs, staleReason };
    },
    saved: () => saved,
    called() {
      upstreamCalls += 1;
    },
    answered(asOfMs, reason, savedReason) {
      if (savedReason) {
        servedWithoutCall += 1;
        saved[savedReason] = (saved[savedReason] ?? 0) + 1;
      }
      oldestAsOfMs = Math.min(oldestAsOfMs, asOfMs);
      if (!reason || asOfMs >= stalestAsOfMs) return;
      stalestAsOfMs = asOfMs;
      staleReason = reason;
    },
  };
}
