import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/common/plan.ts';
import { askDayUsed, askQueued, createPet } from '../../support/client.ts';
import type { CreateOptions } from '../../support/client.ts';
import { startLoad } from '../../support/load.ts';
import { outcomeOf } from '../../support/operation.ts';
import { permitProblem } from '../../support/plan-rules.ts';
import type { Operation } from '../../support/operation.ts';
import { percentile } from '../../../src/program/simulate/percentile.ts';
import { between } from '../../support/random.ts';
import { until } from '../../support/until.ts';
import type { Deployment } from '../deployment.ts';
import type { Check } from '../suite.ts';
import { MINUTE_MS, aheadForMinuteIn, judge, scenario, startTrial } from './scenario.ts';

const KEY = 'a-key';
/** A day that is exhausted in seconds; the headers are about the minute alone. */
const SMALL_DAY = { perMinute: 1_000, perDay: 200 };
const SMALL_DAY_ARGS = ['--plan', '1000/200'];
const PLACES = [
  { store: 'redis', replicas: 3 },
  { store: 'state-file', replicas: 1 },
] as const;

/** Creates pets at the first replica, each with its own name, and notes the operations. */
function createsAt({ fleet }: Deployment) {
  const operations: Operation[] = [];
  const { address } = fleet.replica(0).process;
  const create = (name: string, options: Partial<CreateOptions> = {}) =>
    createPet(address, { key: KEY, pet: { name, categoryId: '1' }, waitSeconds: 60, operations, ...options });
  const createMany = (count: number, name: string, options?: Partial<CreateOptions>) =>
    Promise.all(Array.from({ length: count }, (_, index) => create(`${name} ${index}`, options)));
  return { operations, address, create, createMany };
}

const KILL_AT = 160;
/** The reserve of one in a hundred, and what was on its way when the process was killed. */
const MIN_AFTER_KILL = 180;

export const killed: readonly Check[] = PLACES.map(({ store, replicas }) =>
  scenario(
    { name: `killed-${store}`, goal: 'kill -9 at 80 % of the day: the day is never exceeded', processes: replicas },
    async (scene) => {
      const { random } = scene;
      const options = { plan: SMALL_DAY, replicas, store, args: SMALL_DAY_ARGS, latencyMs: [40, 120] } as const;
      const trial = await startTrial(scene, options);
      const { petApi, fleet } = trial;
      const { endpoints } = fleet;
      const load = startLoad({ endpoints, key: KEY, clientsPerReplica: 4, random, waitSeconds: () => 5 });
      await until(() => petApi.log.length >= KILL_AT);
      const atKill = petApi.log.length;
      await fleet.restart([...endpoints.keys()], 'SIGKILL');
      await setTimeout(15_000);
      await load.stop();
      const calls = petApi.log.length;
      const problems = [calls < MIN_AFTER_KILL && `only ${calls} calls, at least ${MIN_AFTER_KILL} expected`];
      const measured = `killed at ${atKill}, ${calls} of ${SMALL_DAY.perDay} in the end`;
      return judge({ trial, operations: load.operations, measured, problems });
    },
  ),
);

/** What one key sends at a time; other calls wait. */
const IN_FLIGHT = 50;
const WAITING = 200;
/** So many successes prove how petql counts: before, fewer go at a time. */
const PROVING = 31;
const WARM_UPS = 60;
const WARM_UP_AT_A_TIME = 25;
const REFUSED_WITHIN_MS = 100;
const RESPONSES_AFTER_MS = 1_000;
const GONE_WITHIN_MS = 8_000;

export const sigterm: readonly Check[] = PLACES.map(({ store }) =>
  scenario(
    {
      name: `sigterm-${store}`,
      goal: `${WAITING} refused within ${REFUSED_WITHIN_MS} ms, exit 0 within ${GONE_WITHIN_MS / 1000} s, no permit lost`,
    },
    async (scene) => {
      const trial = await startTrial(scene, { plan: PLANS.pro, replicas: 1, store, latencyMs: [0, 0] });
      const { petApi, fleet } = trial;
      const { operations, address, createMany } = createsAt(trial);
      // With its code compiled, as in a process that has served for a while.
      for (let round = 0; round < WARM_UPS; round += 1) {
        await createMany(WARM_UP_AT_A_TIME, `earlier ${round}`, { key: 'another-key', waitSeconds: 1 });
      }
      await createMany(PROVING, 'first');
      const { promise: held, resolve: respond } = Promise.withResolvers<void>();
      petApi.fault = () => ({ held });
      const ownCalls = () => petApi.log.filter(({ key }) => key === KEY).length;
      const creating = createMany(IN_FLIGHT + WAITING, 'pet');
      await until(async () => ownCalls() === PROVING + IN_FLIGHT && (await askQueued(address, KEY)) === WAITING);
      const stoppedMs = performance.now();
      const exited = fleet
        .replica(0)
        .process.exited.then((code) => ({ code, goneMs: Math.round(performance.now() - stoppedMs) }));
      const restarted = fleet.restart([0], 'SIGTERM');
      void setTimeout(RESPONSES_AFTER_MS).then(respond);
      const refused = (await creating).filter((operation) => outcomeOf(operation) === 'RATE_LIMITED');
      const refusedMs = Math.round(Math.max(...refused.map(({ endedMs }) => endedMs - stoppedMs)));
      const { code, goneMs } = await exited;
      await restarted;
      const used = await askDayUsed(fleet.replica(0).process.address, KEY);

      const problems = [
        refused.length !== WAITING && `${refused.length} were refused, ${WAITING} expected`,
        refusedMs > REFUSED_WITHIN_MS && `the last was refused after ${refusedMs} ms`,
        code !== 0 && `it ended with ${code}`,
        goneMs > GONE_WITHIN_MS && `it was gone after ${goneMs} ms`,
        permitProblem(used, { sent: ownCalls() }),
      ];
      const measured = `refused in ${refusedMs} ms, gone in ${goneMs} ms, ${used} of ${ownCalls()} counted after`;
      return judge({ trial, operations, measured, problems });
    },
  ),
);

/** No more than the next window allows: petql rejects at once what cannot be sent in time. */
const WAITERS = 280;
const STAYS_SHARE = 0.1;
/** When the window begins that the waiters wait for, and from when until when they leave around it. */
const WINDOW_IN_MS = 30_000;
const LEAVES_MS = [-5_000, 900] as const;
/** Until petql notices that a connection was closed. */
const NOTICED_MS = 250;
const SETTLED_MS = 3_000;

/** Most clients that wait leave, up to the very moment in which their turn comes. */
export const abandoned = scenario(
  { name: 'abandoned', goal: '90 % of the waiters leave: nothing is sent for them, permits exact', processes: 1 },
  async (scene) => {
    const { random } = scene;
    const aheadMs = aheadForMinuteIn(WINDOW_IN_MS);
    // Otherwise petql learns the plan from the first responses, and rejects the rest of the first 300 calls.
    const trial = await startTrial(scene, { plan: PLANS.pro, replicas: 1, aheadMs, args: ['--plan', 'pro'] });
    const { petApi } = trial;
    const { log } = petApi;
    const { operations, address, create, createMany } = createsAt(trial);
    await createMany(PLANS.pro.perMinute, 'early', { waitSeconds: 69 });
    const windowMs = Math.ceil(petApi.now() / MINUTE_MS) * MINUTE_MS;
    const leftAtMs = new Map<string, number>();
    const creates = Array.from({ length: WAITERS }, (_, index) => {
      const name = `waiter ${index}`;
      if (random() < STAYS_SHARE) return create(name, { waitSeconds: 69 });
      const leaving = new AbortController();
      void setTimeout(windowMs + between(random, ...LEAVES_MS) - petApi.now()).then(() => {
        leftAtMs.set(name, petApi.now());
        leaving.abort();
      });
      return create(name, { waitSeconds: 69, signal: leaving.signal });
    });
    const leavesAtMs = windowMs + LEAVES_MS[0];
    await until(async () => (await askQueued(address, KEY)) === WAITERS || petApi.now() > leavesAtMs);
    const isLate = petApi.now() > leavesAtMs;
    const outcomes = Map.groupBy(await Promise.all(creates), (operation) => outcomeOf(operation));
    const gone = outcomes.get('left')?.length ?? 0;
    const created = outcomes.get('created')?.length ?? 0;
    // Calls in flight for clients that left are settled by then.
    await setTimeout(SETTLED_MS);
    const used = await askDayUsed(address, KEY);

    const problems = [
      ...log.map(
        ({ name = '', atMs }) =>
          atMs > (leftAtMs.get(name) ?? Infinity) + NOTICED_MS && `${name} was sent though its client had left`,
      ),
      isLate && 'the waiters came too late for this proof',
      gone + created !== WAITERS && `${gone} left and ${created} created of ${WAITERS}`,
      permitProblem(used, { sent: log.length }),
    ];
    const measured = `${gone} left, ${created} created, ${used} counted of ${log.length}`;
    return judge({ trial, operations, measured, problems });
  },
);

const REFUSED_P99_MS = 5;
const REFUSALS = 2_000;
const REFUSALS_WARM_UP = 1_000;

/** A key without quota is refused at once, however long it would wait. */
export const usedUpDay = scenario(
  { name: 'used-up-day', goal: `refused within ${REFUSED_P99_MS} ms (p99 over HTTP)` },
  async (scene) => {
    const trial = await startTrial(scene, { plan: SMALL_DAY, replicas: 1, args: SMALL_DAY_ARGS });
    const { log } = trial.petApi;
    const { operations, create, createMany } = createsAt(trial);
    await createMany(SMALL_DAY.perDay, 'early');
    const used = log.length;
    for (let index = 0; index < REFUSALS_WARM_UP + REFUSALS; index += 1) await create(`pet ${index}`);
    const tookMs = operations.slice(-REFUSALS).map(({ startedMs, endedMs }) => endedMs - startedMs);
    const p99Ms = percentile(tookMs, 0.99);
    const problems = [
      p99Ms > REFUSED_P99_MS && `refused within ${p99Ms.toFixed(1)} ms`,
      log.length !== used && 'calls arrived after the day was exhausted',
    ];
    const measured = `p50 ${percentile(tookMs, 0.5).toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`;
    return judge({ trial, operations, measured, problems });
  },
);
