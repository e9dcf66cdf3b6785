import type { Clock } from '../clock.ts';
import { DURATIONS } from '../durations.ts';
import type { Log } from '../log.ts';
import { createRouteRest } from './route-rest.ts';

/** When `GET /pets/{petId}` goes (pet-api.md, "Get an animal"): 5 December 2030. */
const SUNSET_MS = Date.UTC(2030, 11, 5);
/**
 * How long before it nobody is sent there any more: longer than a call can be under way, and than a clock that is known from
 * `Date` headers is behind.
 */
const MARGIN_MS = DURATIONS.upstreamTimeoutMs.highest + 60_000;
/** A sunset that is nearer than this is worth a word. */
const NEAR_MS = 180 * 86_400_000;

/** Whether the upstream still has the deprecated `GET /pets/{petId}`; the same for every caller. */
export interface GetRoute {
  /**
   * Whether it is there as far as is known. Until some minutes before the announced sunset at most, even where a later one
   * is told: a route that is gone all the same could answer 404, and that would read as an animal that is not there.
   */
  readonly works: boolean;
  /**
   * Whether its answer that there is no such animal is about the animal: past a sunset, told or announced, a route that is
   * gone may say the same.
   */
  readonly provesAbsence: boolean;
  /** Whether it was not there when it was asked last, and is looked after again: after 1 s, 2 s, 4 s and so on up to an hour. */
  readonly rests: boolean;
  /** Whether a get may be sent at this moment: to a route that works, or by one who looks after one that rests. */
  readonly mayBeAsked: boolean;
  /** When it goes, in milliseconds since the epoch, where that is less than 180 days away; as told, or as announced. */
  readonly nearSunsetMs: number | undefined;
  /** A get is sent. Takes what its answer says of the route: that it is there, that it is not, or undefined for neither. */
  asked(): (isThere: boolean | undefined) => void;
  /** What the `Sunset` header of an answer says (RFC 8594). The first near one is logged, once. */
  sunsetTold(atMs: number): void;
}

export interface GetRouteOptions {
  readonly clock: Clock;
  /** The upstream's clock; undefined while it is not known. */
  upstreamNow(): number | undefined;
  readonly log: Log;
}

export function createGetRoute({ clock, upstreamNow, log }: GetRouteOptions): GetRoute {
  const rest = createRouteRest('GET /pets/{petId}', clock, log);
  let sunsetMs = SUNSET_MS;
  let logged = false;
  const nowMs = () => upstreamNow() ?? clock.now();
  const nearSunsetMs = () => (sunsetMs - nowMs() < NEAR_MS ? sunsetMs : undefined);
  const isBefore = (endMs: number) => nowMs() < endMs - MARGIN_MS;
  const isBeforeEnd = () => isBefore(SUNSET_MS);
  return {
    get works() {
      return rest.isOver && isBeforeEnd();
    },
    get provesAbsence() {
      return isBefore(Math.min(sunsetMs, SUNSET_MS));
    },
    get rests() {
      return !rest.isOver && isBeforeEnd();
    },
    get mayBeAsked() {
      return rest.mayAsk && isBeforeEnd();
    },
    get nearSunsetMs() {
      return nearSunsetMs();
    },
    asked: () => rest.asked(),
    sunsetTold(atMs) {
      sunsetMs = atMs;
      if (logged || nearSunsetMs() === undefined) return;
      logged = true;
      log.warn(
        { sunset: new Date(atMs).toISOString() },
        'the service soon withdraws GET /pets/{petId}; ids are then looked for in listings of 100 animals',
      );
    },
  };
}
