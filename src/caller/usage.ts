import type { Clock } from '../clock.ts';
import type { ServedResult, StaleReason } from '../reads/read-request.ts';

/** What one request has cost, and how old its answers are: `extensions.petql`. */
export interface Usage {
  /** Upstream calls made for this request. A call that answers other requests too counts for one of them. */
  readonly upstreamCalls: number;
  /** Different reads that cost this request no call: answered from the cache, or by a call that another request paid for. */
  readonly savedCalls: number;
  /** The age of the oldest answer in milliseconds, at this moment; undefined where there was none. */
  readonly oldestAgeMs: number | undefined;
  /** Why the oldest of the stale answers is stale; undefined where none is. */
  readonly staleReason: StaleReason | undefined;
}

export const NO_USAGE: Usage = {
  upstreamCalls: 0,
  savedCalls: 0,
  oldestAgeMs: undefined,
  staleReason: undefined,
};

/** Why a read cost no call. */
type SavedReason = StaleReason | 'FRESH' | 'SHARED_CALL';

/** How many reads cost no call of their own, by the reason. */
export type SavedCalls = Readonly<Partial<Record<SavedReason, number>>>;

type UsedAnswer = Pick<ServedResult, 'asOfMs' | 'staleReason'>;

/** Counts what one request costs. */
export function createUsageMeter({ elapsed }: Pick<Clock, 'elapsed'>) {
  let upstreamCalls = 0;
  let savedCalls = 0;
  let oldestAsOfMs = Infinity;
  let stalest: UsedAnswer | undefined;
  const saved: Partial<Record<SavedReason, number>> = {};
  return {
    usage(): Usage {
      const oldestAgeMs = oldestAsOfMs === Infinity ? undefined : Math.max(0, Math.round(elapsed() - oldestAsOfMs));
      return { upstreamCalls, savedCalls, oldestAgeMs, staleReason: stalest?.staleReason };
    },
    saved: (): SavedCalls => saved,
    called() {
      upstreamCalls += 1;
    },
    /** @param reason why the read cost no call; undefined where it did. */
    answered(answer: UsedAnswer, reason: SavedReason | undefined) {
      if (reason) {
        savedCalls += 1;
        saved[reason] = (saved[reason] ?? 0) + 1;
      }
      oldestAsOfMs = Math.min(oldestAsOfMs, answer.asOfMs);
      if (answer.staleReason && answer.asOfMs < (stalest?.asOfMs ?? Infinity)) stalest = answer;
    },
  };
}
