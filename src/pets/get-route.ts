import type { Clock } from '../clock.ts';
import type { Int64 } from './int64.ts';
import type { Log } from '../log.ts';
import type { Pet } from './pet.ts';
import type { PetApi } from './pet-api.ts';
import type { UpstreamOutcome } from '../upstream/outcome.ts';

/** When the upstream removes `GET /pets/{petId}` (pet-api.md, "Get an animal"): 5 December 2030. */
const SUNSET_MS = Date.UTC(2030, 11, 5);
/** Gets end this long before the sunset: longer than a call can take (10 minutes), and than clocks differ. */
const MARGIN_MS = 660_000;
/** How many different pets have to be answered so: a client may ask for an id that a router does not take. */
const ENOUGH_SUSPECTS = 3;
/** How long no get is sent then. Each probe that fails doubles it. */
const FIRST_BREAK_MS = 1_000;
const MAX_BREAK_MS = 60_000;
const ROUTE = 'GET /pets/{petId}';

/** A get that has ended. */
interface EndedGet {
  readonly id: Int64;
  /** By `clock.elapsed()`. */
  readonly sentAtMs: number;
  /** Whether a response has shown this pet a moment ago. */
  readonly isKnown: boolean;
}

/** Whether the upstream still has the deprecated `GET /pets/{petId}`, for all callers: its sunset and a circuit breaker. */
export class GetRoute {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #petApi: Pick<PetApi, 'hasWorked'>;
  /** Pets whose gets were answered that there is no such route, since one was answered otherwise. */
  readonly #suspects = new Set<Int64>();
  /** How long the circuit is open before the next probe; 0 while it is closed. */
  #breakMs = 0;
  /** By `clock.elapsed()`: when the circuit opened or its last probe failed, and when the next get may be sent. */
  #openedAtMs = -Infinity;
  #probeAtMs = -Infinity;
  /** Whether a get was answered 404 before any call had worked. */
  #isUnproven = false;

  constructor(clock: Clock, log: Log, petApi: Pick<PetApi, 'hasWorked'>) {
    this.#clock = clock;
    this.#log = log;
    this.#petApi = petApi;
  }

  /** Whether a get may be sent now: while the circuit is closed, or as its probe. After an unproven 404 a list comes first. */
  get mayGet(): boolean {
    if (this.#isUnproven && !this.#petApi.hasWorked) return false;
    return this.#isBeforeSunset && (this.#breakMs === 0 || this.#clock.elapsed() >= this.#probeAtMs);
  }

  /** Whether the upstream has the route, by the latest responses. */
  get isHealthy(): boolean {
    return this.#isBeforeSunset && this.#breakMs === 0;
  }

  /** Records that a get is sent; while the circuit is open, it is the probe. */
  recordGet(): void {
    if (this.#breakMs > 0) this.#probeAtMs = this.#clock.elapsed() + this.#breakMs;
  }

  /**
   * Reads the state of the route from the outcome of a get. The value is null for a pet that does not exist; `not-found` is left
   * where no call has worked yet, since the base URL itself may be wrong.
   */
  judge(outcome: UpstreamOutcome<Pet>, get: EndedGet): UpstreamOutcome<Pet | null> {
    // After the sunset a 404 may mean that the route is gone, and proves no absence.
    if (outcome.kind === 'not-found' && !this.#isBeforeSunset) return { kind: 'route-gone', status: 404 };

    const is404 = outcome.kind === 'not-found' || (outcome.kind === 'route-gone' && outcome.status === 404);
    if (is404 && !this.#petApi.hasWorked) {
      this.#isUnproven = true;
      return { kind: 'not-found' };
    }

    if (outcome.kind === 'ok' || outcome.kind === 'not-found') this.#close();
    else if (outcome.kind === 'route-gone') this.#suspect(get, outcome.status);
    return outcome.kind === 'not-found' ? { kind: 'ok', value: null } : outcome;
  }

  get #isBeforeSunset(): boolean {
    return this.#clock.now() < SUNSET_MS - MARGIN_MS;
  }

  #close(): void {
    this.#suspects.clear();
    if (this.#breakMs === 0) return;
    this.#breakMs = 0;
    this.#log.info({ route: ROUTE }, 'the pet API has this route again');
  }

  #suspect({ id, sentAtMs, isKnown }: EndedGet, status: number): void {
    const isClosed = this.#breakMs === 0;
    this.#suspects.add(id);
    const isEnough = isClosed ? isKnown || this.#suspects.size >= ENOUGH_SUSPECTS : sentAtMs >= this.#openedAtMs;
    // Gets from before the circuit opened are no probes.
    if (!isEnough) return;

    this.#suspects.clear();
    this.#breakMs = isClosed ? FIRST_BREAK_MS : Math.min(2 * this.#breakMs, MAX_BREAK_MS);
    this.#openedAtMs = this.#clock.elapsed();
    this.#probeAtMs = this.#openedAtMs + this.#breakMs;
    if (!isClosed) return;
    const message = 'the pet API responds to single pets as if it had no such route; petql probes it';
    this.#log.warn({ route: ROUTE, status }, message);
  }
}
