import type { GetRoute } from '../../src/caller/get-route.ts';

/** Whether single animals may be asked for, which no answer changes. */
export function steadyRoute(works = true): GetRoute {
  return {
    works,
    provesAbsence: true,
    rests: false,
    mayBeAsked: works,
    nearSunsetMs: undefined,
    asked: () => () => {},
    sunsetTold() {},
  };
}
