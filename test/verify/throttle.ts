import { runTests } from './run-tests.ts';
import type { Suite } from './suite.ts';
import { abandoned, killed, sigterm, usedUpDay } from './throttle/ends.ts';
import { leavers, malformed, manyKeys } from './throttle/in-process.ts';
import { redisFaults } from './throttle/redis-faults.ts';
import { clocks, saturation } from './throttle/saturation.ts';
import { storms } from './throttle/storms.ts';

const SIMULATED = 'no 429 and the whole plan used: three days, plans that change, restarts, all on virtual time';

export const throttle: Suite = {
  about: 'petql processes whose clients want more than a plan allows',
  // The longest first, so that the others run beside them.
  checks: [
    ...storms,
    ...redisFaults,
    ...saturation,
    ...clocks,
    ...killed,
    ...sigterm,
    abandoned,
    usedUpDay,
    ...manyKeys,
    leavers,
    malformed,
    {
      name: 'simulated',
      goal: SIMULATED,
      processes: 1,
      run: () => runTests(SIMULATED, ['test/plan'], { PETQL_ALL_CASES: '1' }),
    },
  ],
};
