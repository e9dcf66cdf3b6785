import type { Clock } from '../clock.ts';
import type { Int64 } from '../int64.ts';
import type { Log } from '../log.ts';
import type { Pet } from '../pet.ts';
import type { UpstreamOutcome } from '../upstream/pet-api.ts';

/** When the upstream removes `GET /pets/{petId}` (pet-api.md, "Get an animal"): 5 December 2030. */
const SUNSET_MS = Date.UTC(2030, 11, 5);
/** Gets end this long before the sunset: longer than a call can take (10 minutes), and than clocks differ. */
const MARGIN_MS = 660_000;
/** A sunset that is nearer than this is logged. */
const NEAR_MS = 180 * 86_400_000;
/** How long no get is sent after one was answered that there is no such route. */
const BREAK_MS = 60_000;
const ROUTE = 'GET /pets/{petId}';

export type GetRoute = ReturnType<typeof createGetRoute>;

/** Whether the upstream still has the deprecated `GET /pets/{petId}`, for all callers: its sunset and a circuit breaker. */
export function createGetRoute(clock: Clock, log: Log) {
  let isBroken = false;
  let probeAtMs = -Infinity;
  const isBeforeSunset = () => clock.now() < SUNSET_MS - MARGIN_MS;
  const nearSunsetMs = () => (SUNSET_MS - clock.now() < NEAR_MS ? SUNSET_MS : undefined);

  if (nearSunsetMs() !== undefined) {
    const sunset = new Date(SUNSET_MS).toISOString();
    log.warn({ route: ROUTE, sunset }, 'the pet API removes this route; ids are then looked up in lists');
  }

  return {
    /** Whether a get may be sent now: while the circuit is closed, or as its one probe a minute. */
    mayGet: () => isBeforeSunset() && (!isBroken || clock.elapsed() >= probeAtMs),
    /** Whether the upstream has the route, as far as is known. */
    isHealthy: () => isBeforeSunset() && !isBroken,
    /** The sunset in milliseconds since the epoch, where it is less than 180 days away. */
    nearSunsetMs,
    /** A get is sent; while the circuit is open, it is the probe. */
    sending() {
      if (isBroken) probeAtMs = clock.elapsed() + BREAK_MS;
    },
    /** Reads the state of the route from the outcome of a get. The value is null for a pet that does not exist. */
    judge(outcome: UpstreamOutcome<Pet>, id: Int64): UpstreamOutcome<Pet | null> {
      // After the sunset a 404 may mean that the route is gone, and proves no absence.
      if (outcome.kind === 'not-found' && !isBeforeSunset()) return { kind: 'route-gone', status: 404 };
      const isThere = outcome.kind === 'ok' || outcome.kind === 'not-found';
      // Many routers take digits alone for an id, and any client may read one below zero.
      if (isThere || (outcome.kind === 'route-gone' && !id.startsWith('-'))) setBroken(!isThere);
      return outcome.kind === 'not-found' ? { kind: 'ok', value: null } : outcome;
    },
  };

  function setBroken(broken: boolean): void {
    if (broken === isBroken) return;
    isBroken = broken;
    probeAtMs = clock.elapsed() + BREAK_MS;
    if (broken) log.warn({ route: ROUTE }, 'the pet API has no such route; petql probes it once a minute');
    else log.info({ route: ROUTE }, 'the pet API has this route again');
  }
}
