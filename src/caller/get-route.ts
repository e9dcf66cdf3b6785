import type { Clock } from '../clock.ts';

/** When `GET /pets/{petId}` goes (pet-api.md, "Get an animal"): 5 December 2030. */
const SUNSET_MS = Date.UTC(2030, 11, 5);
/** A route that was not there may be back after a deployment that went wrong; one that said it is gone is gone. */
const LOOK_AGAIN_MS = 3_600_000;

/** Whether the upstream still has the deprecated `GET /pets/{petId}`; the same for every caller. */
export interface GetRoute {
  readonly works: boolean;
  /** The upstream answered that there is no such route: 410 for good, another status for an hour. */
  withdrawn(status: number): void;
}

/** @param upstreamNow the upstream's clock; undefined while it is not known. */
export function createGetRoute({ now, elapsed }: Clock, upstreamNow: () => number | undefined): GetRoute {
  let untilMs = -Infinity;
  return {
    get works() {
      return elapsed() >= untilMs && (upstreamNow() ?? now()) < SUNSET_MS;
    },
    withdrawn(status) {
      untilMs = status === 410 ? Infinity : Math.max(untilMs, elapsed() + LOOK_AGAIN_MS);
    },
  };
}
