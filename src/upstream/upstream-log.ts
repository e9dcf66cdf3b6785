import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { UpstreamAnswer } from './outcome.ts';

/** Minimum time between two lines about an upstream that comes and goes. */
const LOG_EVERY_MS = 60_000;

/** Logs what is wrong with the upstream itself: a wrong host name or an expired certificate shows nowhere else. */
export class UpstreamLog {
  readonly #log: Log;
  readonly #clock: Pick<Clock, 'elapsed'>;
  /** The warnings that were logged. */
  readonly #warned = new Set<string>();
  #isUnreachable = false;
  #loggedAtMs = -Infinity;

  constructor(log: Log, clock: Pick<Clock, 'elapsed'>) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Logs a warning unless it was logged before. */
  warnOnce(details: object, message: string): void {
    if (!this.#warned.has(message)) this.#log.warn(details, message);
    this.#warned.add(message);
  }

  /** Logs that the upstream becomes unreachable, or is reachable again. */
  logReachability({ outcome, sent }: UpstreamAnswer<unknown>): void {
    if (outcome.kind === 'no-answer' && outcome.reason === 'unreachable') this.#logUnreachable(outcome.code);
    else if (sent) this.#logReachable();
  }

  #logUnreachable(reason: string | undefined): void {
    const nowMs = this.#clock.elapsed();
    if (this.#isUnreachable || nowMs - this.#loggedAtMs < LOG_EVERY_MS) return;
    this.#isUnreachable = true;
    this.#loggedAtMs = nowMs;
    this.#log.warn({ reason }, 'pet API unreachable');
  }

  #logReachable(): void {
    if (!this.#isUnreachable) return;
    this.#isUnreachable = false;
    this.#log.info({}, 'pet API reachable again');
  }
}
