import type { Clock } from '../common/clock.ts';
import type { UpstreamOperation } from '../common/events.ts';
import type { Log } from '../common/log.ts';
import { failureDetails } from './outcome.ts';
import type { UpstreamAnswer, UpstreamFailure } from './outcome.ts';
import { WARN_EVERY_MS } from '../common/times.ts';

/** Logs what is wrong with the upstream itself: cached data may hide it from clients, and a wrong host name shows nowhere else. */
export class UpstreamLog {
  readonly #log: Log;
  readonly #clock: Pick<Clock, 'elapsed'>;
  #isFailing = false;
  /** Whether lists failed with a response: then a list shows that they succeed again. */
  #isOfLists = false;
  /** When calls began to fail, or to succeed again, by `clock.elapsed()`. */
  #changedAtMs = -Infinity;
  #warnedAtMs = -Infinity;

  constructor(log: Log, clock: Pick<Clock, 'elapsed'>) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Logs when calls begin to fail, and when they succeed again: one pair of lines a minute, whatever the keys and operations. */
  logHealth(
    operation: UpstreamOperation,
    { ageMs, evidence, outcome, status }: UpstreamAnswer<unknown>,
    sentAtMs: number,
  ): void {
    // A call from before the last change does not show the state since.
    if (sentAtMs < this.#changedAtMs) return;

    if (evidence === 'works') return this.#recordSuccess(operation);
    // A firewall's 403 closes nothing, and lasts until somebody changes the firewall.
    const isBlocked = outcome.kind === 'failed' && outcome.status === 403 && ageMs === undefined;
    if (outcome.kind === 'ok' || (evidence !== 'fails' && !isBlocked)) return;
    // A client chose nothing of a list, and nothing of a connection: those faults are of the API. A wrong base URL has its own line.
    const isOfApi = operation === 'listPets' || (outcome.kind === 'no-answer' && outcome.reason === 'unreachable');
    if (isOfApi && outcome.kind !== 'wrong-base-path') this.#recordFault(operation, outcome, status);
  }

  #recordFault(operation: UpstreamOperation, failure: UpstreamFailure, status: number | undefined): void {
    const nowMs = this.#clock.elapsed();
    if (this.#isFailing || nowMs - this.#warnedAtMs < WARN_EVERY_MS) return;
    this.#isFailing = true;
    this.#isOfLists = failure.kind !== 'no-answer';
    this.#changedAtMs = nowMs;
    this.#warnedAtMs = nowMs;
    this.#log.warn({ operation, status, ...failureDetails(failure) }, 'calls to the pet API fail');
  }

  #recordSuccess(operation: UpstreamOperation): void {
    if (!this.#isFailing || (this.#isOfLists && operation !== 'listPets')) return;
    this.#isFailing = false;
    this.#changedAtMs = this.#clock.elapsed();
    this.#log.info({}, 'calls to the pet API succeed again');
  }
}
