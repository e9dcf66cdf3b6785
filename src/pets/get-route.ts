import type { Clock } from '../clock.ts';
import type { Int64 } from './int64.ts';
import type { Log } from '../log.ts';
import type { Pet } from './pet.ts';
import type { UpstreamOutcome } from '../upstream/outcome.ts';

/** When the upstream removes `GET /pets/{petId}` (pet-api.md, "Get an animal"): 5 December 2030. */
const SUNSET_MS = Date.UTC(2030, 11, 5);
/** Gets end this long before the sunset: longer than a call can take (10 minutes), and than clocks differ. */
const MARGIN_MS = 660_000;
/** How long no get is sent after one was answered that there is no such route. */
const BREAK_MS = 60_000;
const ROUTE = 'GET /pets/{petId}';

/** Whether the upstream still has the deprecated `GET /pets/{petId}`, for all callers: its sunset and a circuit breaker. */
export class GetRoute {
  readonly #clock: Clock;
  readonly #log: Log;
  /** Whether a get was answered that there is no such route, and none was answered otherwise since. */
  #isBroken = false;
  /** By `clock.elapsed()`: when the next get may be sent, while the circuit is open. */
  #probeAtMs = -Infinity;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Whether a get may be sent now: while the circuit is closed, or as its one probe a minute. */
  get mayGet(): boolean {
    return this.#isBeforeSunset && (!this.#isBroken || this.#clock.elapsed() >= this.#probeAtMs);
  }

  /** Whether the upstream has the route, by the latest response. */
  get isHealthy(): boolean {
    return this.#isBeforeSunset && !this.#isBroken;
  }

  /** Records that a get is sent; while the circuit is open, it is the probe. */
  recordGet(): void {
    if (this.#isBroken) this.#probeAtMs = this.#clock.elapsed() + BREAK_MS;
  }

  /** Reads the state of the route from the outcome of a get. The value is null for a pet that does not exist. */
  judge(outcome: UpstreamOutcome<Pet>, id: Int64): UpstreamOutcome<Pet | null> {
    // After the sunset a 404 may mean that the route is gone, and proves no absence.
    if (outcome.kind === 'not-found' && !this.#isBeforeSunset) return { kind: 'route-gone', status: 404 };

    const isThere = outcome.kind === 'ok' || outcome.kind === 'not-found';
    // Many routers take digits alone for an id, and any client may read one below zero.
    if (isThere || (outcome.kind === 'route-gone' && !id.startsWith('-'))) this.#setBroken(!isThere);
    return outcome.kind === 'not-found' ? { kind: 'ok', value: null } : outcome;
  }

  get #isBeforeSunset(): boolean {
    return this.#clock.now() < SUNSET_MS - MARGIN_MS;
  }

  #setBroken(isBroken: boolean): void {
    if (isBroken === this.#isBroken) return;
    this.#isBroken = isBroken;
    this.#probeAtMs = this.#clock.elapsed() + BREAK_MS;
    if (isBroken) this.#log.warn({ route: ROUTE }, 'the pet API has no such route; petql probes it once a minute');
    else this.#log.info({ route: ROUTE }, 'the pet API has this route again');
  }
}
