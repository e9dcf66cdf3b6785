import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../src/common/plan.ts';
import { startLoad } from '../support/load.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { rowOf } from '../support/tally.ts';
import { until } from '../support/until.ts';
import { compareBriefly as benchBriefly } from './bench.ts';
import { fuzzFor } from './fuzz.ts';
import { compareBriefly as compareGuards } from './guards.ts';
import { findStaleMutants } from './mutants.ts';
import { compareBriefly } from './oracle.ts';
import { runTests } from './run-tests.ts';
import { besiegeBriefly } from './siege.ts';
import { runSoak } from './soak/run-soak.ts';
import type { Suite } from './suite.ts';
import { aheadForMinuteIn, judge, scenario, startTrial } from './throttle/scenario.ts';

const SIEGE = 'a good client is answered while petql is attacked from all sides';
const GUARDS = 'each guard can be turned off, and is worth what it costs';
const MUTANTS = 'each defect of the mutants can still be planted';
const GRAPHQL_16 = 'what depends on graphql-js holds with graphql 16 too';
const TESTS = 'the tests that are too long for `npm test` pass';

/** What the soak checks without a tolerance for how busy the machine is. */
const TIMELESS = [
  "errors are the contract's",
  'no key sees data of another',
  'no pet is added twice',
  'a success is in the store',
  'one key has one outcome',
  'what was refused was not added',
  'no call is over the plan (429)',
  'no key is banned (403)',
  'no process ends by itself',
  'SIGTERM ends in exit code 0',
  'no error in the log',
];

/** More than one minute of the plan allows, so that the second minute has begun. */
const ENOUGH_CALLS = 70;
const REDIS_AWAY_MS = 2_000;
const DEADLINE_MS = 120_000;

/**
 * One short check of each suite for continuous integration. None holds petql to a time or a share of the plan, since other
 * work may keep the machine busy; the suites themselves do.
 */
export const smoke: Suite = {
  about: 'all of these for a minute in all, as continuous integration runs them',
  seed: 1,
  checks: [
    {
      name: 'fuzz',
      goal: 'any request and any bytes get a documented answer',
      run: async ({ seed }) => [
        ...(await fuzzFor('messages', { seed, maxCases: 600 })),
        ...(await fuzzFor('bytes', { seed, maxCases: 150 })),
      ],
    },
    { name: 'siege', goal: SIEGE, run: ({ seed }) => besiegeBriefly(SIEGE, seed) },
    {
      name: 'oracle',
      goal: 'hardly more calls than the fewest that anybody could make',
      run: ({ seed }) => compareBriefly(seed, 300),
    },
    {
      name: 'soak',
      goal: 'nothing is lost, doubled, leaked or over the plan while a fault injector harms all parts',
      async run({ seed, print }) {
        const rows = await runSoak({ seconds: 10, seed, replicas: redisIsHere ? 2 : 1, perSecond: 40, print });
        return TIMELESS.map((promise) => {
          const problems = [`the soak does not check "${promise}"`];
          return rows.find((row) => row.promise === promise) ?? rowOf({ promise, looked: 0, problems, measured: '' });
        });
      },
    },
    scenario(
      { name: 'throttle', goal: 'no key is over its plan, over a new minute, kill -9 and a dead Redis', processes: 1 },
      async (scene) => {
        const plan = PLANS.free;
        const [store, replicas] = redisIsHere ? (['redis', 2] as const) : (['state-file', 1] as const);
        const trial = await startTrial(scene, { plan, replicas, store, aheadMs: aheadForMinuteIn(20_000) });
        const { petApi, fleet, redis } = trial;
        const { endpoints } = fleet;
        const load = startLoad({ endpoints, key: 'free-key', clientsPerReplica: 10, random: scene.random });
        const deadlineMs = performance.now() + DEADLINE_MS;
        const calls = (count: number) => until(() => petApi.log.length >= count || performance.now() > deadlineMs);
        await calls(plan.perMinute / 3);
        await fleet.restart([0], 'SIGKILL');
        await calls((plan.perMinute * 2) / 3);
        await redis?.server.kill();
        await setTimeout(REDIS_AWAY_MS);
        await redis?.server.start();
        await calls(ENOUGH_CALLS);
        await load.stop();
        const problems = [petApi.log.length < ENOUGH_CALLS && `only ${petApi.log.length} calls in two minutes`];
        return judge({ trial, operations: load.operations, maxRefusals: redis ? 1 : 0, problems });
      },
    ),
    { name: 'bench', goal: 'petql and its rivals answer the same operations', run: benchBriefly },
    { name: 'guards', goal: GUARDS, run: () => compareGuards(GUARDS) },
    { name: 'mutants', goal: MUTANTS, run: () => findStaleMutants(MUTANTS) },
    {
      name: 'graphql-16',
      goal: GRAPHQL_16,
      processes: 1,
      run: () =>
        runTests(GRAPHQL_16, ['--project=all', 'test/api', 'test/embed', 'test/schema'], { PETQL_GRAPHQL: '16' }),
    },
    { name: 'tests', goal: TESTS, processes: 1, run: () => runTests(TESTS, ['--project=smoke']) },
  ],
};
