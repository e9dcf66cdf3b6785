import type { Log } from '../common/log.ts';
import { HOUR_MS } from '../common/plan.ts';
import type { QuotaState } from '../quota/account/quota-state.ts';
import type { Consumers } from './key-report.ts';

const EARLY_SHARE = 0.8;

/** Logs once a day that most of a key's calls are used, and once that all are. Each replica does so. */
export class DayWarning {
  readonly #log: Pick<Log, 'warn'>;
  /** The share that was logged last. */
  #logged = 0;

  constructor(log: Pick<Log, 'warn'>) {
    this.#log = log;
  }

  /** Call it after each operation that made a call. */
  check({ isKnown, limit, used, resetInMs }: QuotaState['day'], consumers: () => Consumers, now: Now): void {
    const share = used / limit;
    if (share < EARLY_SHARE) this.#logged = 0;
    const reached = share >= 1 ? 1 : EARLY_SHARE;
    if (!isKnown || share < EARLY_SHARE || this.#logged >= reached) return;

    this.#logged = reached;
    const { lastHour, today } = consumers();
    const calls = lastHour.operations.reduce((sum, { callsMade }) => sum + callsMade, 0) * now.replicas;
    const endsInMs = ((limit - used) / Math.max(1, calls)) * HOUR_MS;
    this.#log.warn(
      {
        used,
        limit,
        // At the pace of the last hour.
        exhaustedAt: used < limit && endsInMs < resetInMs ? new Date(now.nowMs + endsInMs).toISOString() : undefined,
        resetsAt: new Date(now.nowMs + resetInMs).toISOString(),
        operation: today.operations[0]?.name,
        client: today.clients[0]?.name,
      },
      reached === 1 ? 'all of the day is used' : '80 % of the day is used',
    );
  }
}

interface Now {
  /** By the wall clock. */
  readonly nowMs: number;
  /** How many processes use the key, as this one does. */
  readonly replicas: number;
}
