import type { TraceContext } from './tracing.ts';

/** One request from its headers or options to the line of calls: made once, for its reads, its writes and their calls. */
export interface CallerRequest {
  /** In the log and in `X-Request-Id`. */
  readonly id: string;
  /** The name of its operation, for the log; undefined where it has none. */
  readonly operation: string | undefined;
  /** The trace that its calls belong to. */
  readonly trace: TraceContext | undefined;
  readonly freshness: Freshness;
  /** By `clock.elapsed()`: no call is sent for the request later than this. */
  readonly deadlineMs: number;
  /** Called only where there is something to abort. */
  readonly signal: () => AbortSignal | undefined;
  /** Whose share of the quota pays for its calls. */
  readonly visitor: string | undefined;
  /** Whether its calls yield to all others of the key. */
  readonly isBackground: boolean;
  /** Whether it wants to know its cost alone. */
  readonly isDryRun: boolean;
  /** Calls that were sent, and are billed to it. */
  upstreamCalls: number;
  /** When it was told to return, by `clock.elapsed()`; -Infinity before. All of its calls are told one time. */
  promisedAtMs: number;
}

/** How old an entry a request accepts, and whether petql may call for a fresh one. */
export interface Freshness {
  /** An entry up to this age is served without a call; below 0 none is. */
  readonly maxAgeMs: number;
  /** An entry up to this age is served while the quota is saved or exhausted, or the upstream fails. */
  readonly maxStaleMs: number;
  /** The request coalesces with calls that were sent up to this time ago: 0 for no-cache, Infinity for any call. */
  readonly coalesceWithinMs: number;
  /** Whether the upstream may be called. */
  readonly mayCall: boolean;
  /** Whether stale entries may be served to save calls (refresh-budget.ts). A request that names its own age gets that age. */
  readonly mayServeStaleToSaveCalls: boolean;
}
