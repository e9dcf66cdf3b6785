import type { Visitor } from '../throttle/visitors.ts';
import type { ToldTime } from '../throttle/line-call.ts';
import type { TraceContext } from '../tracing.ts';
import type { Freshness } from './cache/freshness.ts';
import type { CachedEntry } from './cache/pet-cache.ts';
import type { ReadKey } from '../pets/read-key.ts';

/** What the reads and writes of one request have in common. */
export interface RequestTerms {
  /** In the log and in `X-Request-Id`. */
  readonly id: string;
  /** Returns the name of the operation, for the log. */
  readonly operation: () => string | undefined;
  readonly freshness: Freshness;
  /** By `clock.elapsed()`: no call is sent for the request later than this. */
  readonly deadlineMs: number;
  /** Called only where there is something to abort. */
  readonly signal: () => AbortSignal | undefined;
  /** The trace that its calls belong to. */
  readonly trace: TraceContext | undefined;
  /** Whose share of the quota pays for its calls. */
  readonly visitor: Visitor;
  /** Whether its calls yield to all others of the key. */
  readonly isBackground: boolean;
}

export interface ReadRequest extends RequestTerms {
  readonly told: ToldTime;
  /** Called when a call is sent that is billed to this read of the request. */
  readonly onBilled: (key: ReadKey) => void;
}

/** Why a result is staler than the request wanted. */
export type StaleReason = 'PAUSED' | 'ONLY_IF_CACHED' | 'QUOTA_EXHAUSTED' | 'SAVING_QUOTA' | 'UPSTREAM_FAILED';

export interface ServedResult extends CachedEntry {
  /** Undefined for a fresh result. */
  readonly staleReason: StaleReason | undefined;
  /** Whether the read waited for a call. */
  readonly hasWaited: boolean;
}

export type ReadResult = Error | ServedResult;
