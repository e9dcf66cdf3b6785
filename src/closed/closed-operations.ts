import type { Clock } from '../common/clock.ts';
import type { Log } from '../common/log.ts';
import { WARN_EVERY_MS } from '../common/times.ts';
import { LASTING_MS } from '../common/call-times.ts';

/** An operation that is closed in this process. */
export interface ClosedOperation {
  /** A list by its name, `getPet`, or `api`. */
  readonly operation: string;
  /** For how many API keys; 1 for the API itself. */
  readonly keys: number;
  /** Whether operators should look: it is the API, or has lasted for two minutes. */
  readonly isLasting: boolean;
}

interface Entry {
  readonly keys: number;
  /** By `clock.elapsed()`. */
  readonly sinceMs: number;
  readonly isLogged: boolean;
}

/** The API as an operation: all calls of all keys. */
export const API = 'api';
/** What is logged about an operation that closes, and about one that opens. */
const LINES: Readonly<Record<string, readonly [closed: string, opened: string]>> = {
  [API]: ['the pet API fails, and petql makes one call at a time', 'the pet API works again'],
  getPet: [
    'the pet API responds to single pets as if it had no such route; petql probes it',
    'the pet API has this route again',
  ],
};
const OF_LISTS = ['a list of the pet API fails, and petql calls without it', 'the list works again'] as const;

/** What petql does not call for now, over all proven keys: the log, the metrics and health show it. */
export class ClosedOperations {
  readonly #elapsed: Clock['elapsed'];
  readonly #log: Log;
  readonly #closed = new Map<string, Entry>();
  readonly #warnedAtMs = new Map<string, number>();

  constructor({ elapsed }: Pick<Clock, 'elapsed'>, log: Log) {
    this.#elapsed = elapsed;
    this.#log = log;
  }

  /** @param details of the response that closed it, for the log. */
  close(operation: string, details: object): void {
    const nowMs = this.#elapsed();
    const before = this.#closed.get(operation);
    const isLogged = before?.isLogged ?? nowMs >= (this.#warnedAtMs.get(operation) ?? -Infinity) + WARN_EVERY_MS;
    this.#closed.set(operation, { keys: (before?.keys ?? 0) + 1, sinceMs: before?.sinceMs ?? nowMs, isLogged });
    if (before || !isLogged) return;

    this.#warnedAtMs.set(operation, nowMs);
    const [closed] = LINES[operation] ?? OF_LISTS;
    this.#log.warn({ operation, ...details }, closed);
  }

  open(operation: string): void {
    const before = this.#closed.get(operation);
    if (!before) return;
    if (before.keys > 1) return void this.#closed.set(operation, { ...before, keys: before.keys - 1 });

    this.#closed.delete(operation);
    const [, opened] = LINES[operation] ?? OF_LISTS;
    if (before.isLogged) this.#log.info({ operation }, opened);
  }

  has(operation: string): boolean {
    return this.#closed.has(operation);
  }

  /** Returns what is closed now. */
  report(): readonly ClosedOperation[] {
    const nowMs = this.#elapsed();
    return [...this.#closed].map(([operation, { keys, sinceMs }]) => {
      return { operation, keys, isLasting: operation === API || nowMs >= sinceMs + LASTING_MS };
    });
  }
}
