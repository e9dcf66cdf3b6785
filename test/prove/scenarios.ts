import type { Scenario } from './scenario.ts';
import { abandoned } from './scenarios/abandoned.ts';
import { clocks } from './scenarios/clocks.ts';
import { killed } from './scenarios/killed.ts';
import { malformed } from './scenarios/malformed.ts';
import { manyKeys } from './scenarios/many-keys.ts';
import { redisFaults } from './scenarios/redis-faults.ts';
import { saturation } from './scenarios/saturation.ts';
import { sigterm } from './scenarios/sigterm.ts';
import { simulated } from './scenarios/simulated.ts';
import { storm } from './scenarios/storm.ts';
import { usedUpDay } from './scenarios/used-up-day.ts';

/** All of them; the longest first, so that the others run beside them. */
export const scenariosWith = ({ seeds }: { readonly seeds: number }): readonly Scenario[] => [
  storm,
  ...redisFaults,
  ...saturation,
  ...clocks,
  ...killed,
  ...sigterm,
  abandoned,
  usedUpDay,
  ...manyKeys,
  malformed,
  simulated(seeds),
];
