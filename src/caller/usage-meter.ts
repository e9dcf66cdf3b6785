import type { CallerRequest } from '../common/caller-request.ts';
import type { Clock } from '../common/clock.ts';
import type { StaleReason, Usage } from '../common/usage.ts';
import type { PeekedResult, RequestRead } from './request-read.ts';

/** Why a read cost no call. */
type SavedReason = StaleReason | 'FRESH' | 'SHARED_CALL';

type UsedResult = Pick<PeekedResult, 'asOfMs' | 'staleReason'>;

/** Counts what one request costs, beside its calls. */
export class UsageMeter {
  readonly #request: Pick<CallerRequest, 'upstreamCalls'>;
  readonly #elapsed: Clock['elapsed'];
  readonly #savings: Partial<Record<SavedReason, number>> = {};
  #savedCalls = 0;
  /** By `clock.elapsed()`. */
  #oldestAsOfMs = Infinity;
  /** The oldest of the stale results. */
  #stalest: (UsedResult & { readonly read: RequestRead }) | undefined;

  constructor(request: Pick<CallerRequest, 'upstreamCalls'>, { elapsed }: Pick<Clock, 'elapsed'>) {
    this.#request = request;
    this.#elapsed = elapsed;
  }

  get usage(): Omit<Usage, 'freshAt'> {
    const hasResult = this.#oldestAsOfMs !== Infinity;
    return {
      upstreamCalls: this.#request.upstreamCalls,
      savedCalls: this.#savedCalls,
      oldestAgeMs: hasResult ? Math.max(0, Math.round(this.#elapsed() - this.#oldestAsOfMs)) : undefined,
      staleReason: this.#stalest?.staleReason,
    };
  }

  /** The read that is the oldest of the stale ones. */
  get stalestRead(): { readonly read: RequestRead; readonly asOfMs: number } | undefined {
    return this.#stalest;
  }

  /** How many reads cost no call of their own, by the reason. */
  get savings(): Readonly<Partial<Record<SavedReason, number>>> {
    return this.#savings;
  }

  /** @param saved why the read cost no call; undefined where it did. */
  recordRead(read: RequestRead, result: UsedResult, saved: SavedReason | undefined): void {
    if (saved) {
      this.#savedCalls += 1;
      this.#savings[saved] = (this.#savings[saved] ?? 0) + 1;
    }
    this.#oldestAsOfMs = Math.min(this.#oldestAsOfMs, result.asOfMs);
    if (result.staleReason && result.asOfMs < (this.#stalest?.asOfMs ?? Infinity)) this.#stalest = { ...result, read };
  }
}
