import { DOUBLED_BACKOFF_MS, EVIDENCE_MS, FIRST_BACKOFF_MS } from '../common/call-times.ts';

/** Tries of one thing that failed in a row. Calls that were in flight together are one try. */
export interface Backoff {
  readonly failures: number;
  /** When the first of them failed. By `clock.elapsed()`, as all of its times. */
  readonly sinceMs: number;
  readonly failedAtMs: number;
  /** When the next try may be sent. */
  readonly retryAtMs: number;
}

interface FailedTry {
  readonly sentAtMs: number;
  readonly nowMs: number;
  /** Default 30 s. Above that it grows with the time that the failures last: by a tenth of it. */
  readonly maxMs?: number;
  /** How many processes try. */
  readonly replicas?: number;
}

const PART_OF_OUTAGE = 0.1;

/** Whether nothing was tried for so long after the backoff that the failures count as over. */
export function isForgotten({ retryAtMs }: Backoff, nowMs: number): boolean {
  return nowMs > retryAtMs + EVIDENCE_MS;
}

/**
 * Adds a failed try to those before it: the pauses between them are 1 s, 2 s, 4 s … 30 s, and then a tenth of their time so far. Each of
 * several replicas counts as many failed tries as there are replicas.
 */
export function nextBackoff(
  before: Backoff | undefined,
  { sentAtMs, nowMs, maxMs = DOUBLED_BACKOFF_MS, replicas = 1 }: FailedTry,
): Backoff {
  const goesOn = before !== undefined && !isForgotten(before, nowMs);
  const sinceMs = goesOn ? before.sinceMs : nowMs;
  const isSameTry = goesOn && sentAtMs < before.failedAtMs;
  const failures = (goesOn ? before.failures : 0) + (isSameTry ? 0 : 1);

  const doubledMs = Math.min(FIRST_BACKOFF_MS * 2 ** ((failures - 1) * replicas), DOUBLED_BACKOFF_MS);
  const waitMs = Math.min(Math.max(doubledMs, (nowMs - sinceMs) * PART_OF_OUTAGE), maxMs);
  return { failures, sinceMs, failedAtMs: nowMs, retryAtMs: nowMs + waitMs * replicas };
}
