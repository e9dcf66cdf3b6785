import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';

/**
 * Keeps calls off a route that answered that it is not there. A proxy without backends answers so too, for as long as a
 * deployment takes; so it is looked after again, soon at first and then ever later.
 */
export interface RouteRest {
  /** Whether the last that was told of the route is that it is there; true before anything was told. */
  readonly isOver: boolean;
  /** Whether a call may be sent now: the route works, or it is time to look, and nobody does so already. */
  readonly mayAsk: boolean;
  /** A call is sent to the route. Takes what its answer says: that it is there, that it is not, or undefined for neither. */
  asked(): (isThere: boolean | undefined) => void;
}

const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 3_600_000;
/** Whoever looks is waited for so long: a call may take minutes, and the others have no such route meanwhile. */
const LOOK_MS = 1_000;
/** A route that comes and goes is a line in the log so often at most. */
const TOLD_EVERY_MS = 60_000;

/** @param name of the route, for the log. */
export function createRouteRest(name: string, clock: Pick<Clock, 'elapsed'>, log: Log): RouteRest {
  /** How long the rest is; 0 while the route works. */
  let restMs = 0;
  /** When the last rest ended or ends. */
  let endMs = -Infinity;
  let nextLookMs = -Infinity;
  let isTold = false;
  let backToldAtMs = -Infinity;

  return {
    get isOver() {
      return restMs === 0;
    },
    get mayAsk() {
      return restMs === 0 || clock.elapsed() >= nextLookMs;
    },
    asked() {
      const sentAtMs = clock.elapsed();
      if (restMs > 0) nextLookMs = sentAtMs + LOOK_MS;
      return (isThere) => {
        if (isThere === undefined) nextLookMs = endMs;
        else if (isThere) found();
        else missed(sentAtMs);
      };
    },
  };

  function found(): void {
    if (restMs === 0) return;
    restMs = 0;
    endMs = clock.elapsed();
    if (!isTold) return;
    isTold = false;
    backToldAtMs = clock.elapsed();
    log.info({ route: name }, 'the service answers on this route again');
  }

  function missed(sentAtMs: number): void {
    // Of many that were under way at the same time, all say the same, and count once.
    if (sentAtMs < endMs) return;
    restMs = restMs === 0 ? FIRST_REST_MS : Math.min(restMs * 2, LONGEST_REST_MS);
    endMs = clock.elapsed() + restMs;
    nextLookMs = endMs;
    if (isTold || clock.elapsed() < backToldAtMs + TOLD_EVERY_MS) return;
    isTold = true;
    log.warn(
      { route: name },
      'the service answers that there is no such route; it is asked again in a second, and then ever later up to an hour',
    );
  }
}
