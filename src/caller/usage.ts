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

/** The same as JSON. `JSON.stringify` would take a tenth of all that an answer from memory takes. */
export function usageJson({ upstreamCalls, servedWithoutCall, oldestAgeMs, staleReason }: Usage): string {
  const age = oldestAgeMs === undefined ? '' : `,"oldestAgeMs":${oldestAgeMs}`;
  const reason = staleReason === undefined ? '' : `,"staleReason":"${staleReason}"`;
  return `{"upstreamCalls":${upstreamCalls},"servedWithoutCall":${servedWithoutCall}${age}${reason}}`;
}

/** Why a demand cost no call: memory was fresh, a call made for another demand answered it too, or something older had to do. */
export type SavedReason = StaleReason | 'FRESH' | 'SHARED_CALL';

/** How many demands cost no call of their own, by the reason. */
export type SavedCalls = Readonly<Partial<Record<SavedReason, number>>>;

/** What a request has read, where memory alone answered and all of it was as young as was asked for. */
export interface FreshReads {
  /** Different demands. */
  readonly demands: number;
  /** Of the oldest answer, by `clock.elapsed()`; Infinity where there was no demand. */
  readonly oldestAsOfMs: number;
}

/** Keeps a request's account. */
export interface UsageMeter {
  usage(): Usage;
  saved(): SavedCalls;
  /** Undefined where a call was made or waited for, or something older had to do. */
  freshReads(): FreshReads | undefined;
  called(): void;
  /** One of the calls was not sent after all. */
  refunded(): void;
  /**
   * @param asOfMs by `clock.elapsed()`: an answer grows older while the request waits for its others.
   * @param saved why no call was made for it; undefined where one was.
   */
  answered(asOfMs: number, staleReason: StaleReason | undefined, saved: SavedReason | undefined): void;
}

/** What they cost, and how old they are at a moment by `clock.elapsed()`. */
export function freshUsage({ demands, oldestAsOfMs }: FreshReads, nowMs: number): Usage {
  return { ...NO_USAGE, servedWithoutCall: demands, oldestAgeMs: ageMs(oldestAsOfMs, nowMs) };
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
      return { upstreamCalls, servedWithoutCall, oldestAgeMs: ageMs(oldestAsOfMs, elapsed()), staleReason };
    },
    saved: () => saved,
    freshReads() {
      const allFresh = upstreamCalls === 0 && servedWithoutCall === (saved.FRESH ?? 0);
      return allFresh ? { demands: servedWithoutCall, oldestAsOfMs } : undefined;
    },
    called() {
      upstreamCalls += 1;
    },
    refunded() {
      upstreamCalls -= 1;
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

function ageMs(asOfMs: number, nowMs: number): number | undefined {
  return asOfMs === Infinity ? undefined : Math.max(0, Math.round(nowMs - asOfMs));
}
