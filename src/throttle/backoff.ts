/** A try that failed, and those before it. */
interface Failures {
  /** Tries in a row that failed, from 1. */
  readonly count: number;
  /** Since the first of them. */
  readonly lastsMs: number;
  /** The `Retry-After` of its response; undefined where it has none. */
  readonly retryAfterMs: number | undefined;
}

const FIRST_MS = 1_000;
const MAX_MS = 30_000;
/** An outage that has lasted so long gets a try in each quarter of an hour: more would use up the day of a small plan. */
const LONG_MS = 600_000;
export const MAX_RETRY_AFTER_MS = 900_000;

/** Returns the pause before the next try: 1 s, 2 s, 4 s … 30 s, and in a long outage 15 min; or what the upstream asks for. */
export function backoffMs({ count, lastsMs, retryAfterMs = 0 }: Failures): number {
  const ownMs = lastsMs < LONG_MS ? Math.min(FIRST_MS * 2 ** (count - 1), MAX_MS) : MAX_RETRY_AFTER_MS;
  return Math.max(ownMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
}
