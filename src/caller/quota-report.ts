import type { PlanWindow } from '../plan.ts';
import type { CallerView } from './caller.ts';
import type { Consumers } from './consumers.ts';

/** The quota of one API key and who used it, as plain JSON. Times are ISO 8601. */
export interface KeyReport {
  /** The hash of the key, as in the log; `petql hash-key` prints it. */
  readonly key: string;
  /** "Free", or the figures of a plan without a name: "500/20000"; null while it is not known. */
  readonly plan: string | null;
  /** Of all replicas, as this process saw them last. */
  readonly windows: readonly WindowReport[];
  readonly pausedUntil: string | null;
  /** Whether the pet API rejected the key, so that petql makes no call with it for now. */
  readonly isRejected: boolean;
  /** Of this process, since it began to use the key. */
  readonly queued: number;
  readonly callsMade: number;
  readonly callsSaved: number;
  /** Of this process. */
  readonly consumers: Consumers;
}

interface WindowReport {
  readonly window: PlanWindow;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly resetAt: string | null;
}

/** The keys that called last. */
const MAX_KEYS = 100;

export async function quotaReport(views: AsyncIterable<CallerView>): Promise<KeyReport[]> {
  const reports: KeyReport[] = [];
  for await (const { name, quota, isRejected, made, saved, consumers } of views) {
    const { plan = null, windows, queued, pausedUntil } = quota;
    reports.push({
      key: name,
      plan,
      windows: windows.map(({ resetAt, ...window }) => ({ ...window, resetAt: resetAt?.toISOString() ?? null })),
      pausedUntil: pausedUntil?.toISOString() ?? null,
      isRejected,
      queued,
      callsMade: made,
      callsSaved: saved,
      consumers,
    });
    if (reports.length === MAX_KEYS) break;
  }
  return reports;
}
