import { expect, test } from 'vitest';
import { redisIsHere } from '../support/redis-server.ts';
import { runSoak } from './run-soak.ts';
import { tableOf } from './table.ts';

// What `npm run soak` holds for an hour, for some seconds.

const SEED = Number(process.env['FUZZ_SEED'] ?? 11);
/** Two processes start, and the last operations end. */
const TIMEOUT_MS = 120_000;
/** Nothing need have gone wrong in so short a time. */
const MAY_BE_IDLE: ReadonlySet<string> = new Set(['an unknown outcome is unknown', 'no error in the log']);

test(
  'petql keeps its promises while the service, Redis and its processes are harmed',
  async () => {
    const result = await runSoak({ seconds: 12, seed: SEED, replicas: redisIsHere ? 2 : 1, perSecond: 40 });
    const broken = result.tallies.flatMap(({ problems }) => problems);
    // The whole table, so that a failure can be understood.
    expect(broken.length > 0 ? tableOf(result) : 'nothing is broken').toBe('nothing is broken');
    const idle = result.tallies.filter(({ looked }) => looked === 0).map(({ check }) => check);
    // What a process holds is judged after minutes.
    expect(idle.filter((check) => !check.includes('flat') && !MAY_BE_IDLE.has(check))).toEqual([]);
    expect(Object.keys(result.troubles).length).toBeGreaterThan(0);
    expect(result.operations).toBeGreaterThan(200);
  },
  TIMEOUT_MS,
);
