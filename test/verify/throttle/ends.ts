import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/plan.ts';
import { askDayUsed, askQueued, createPet } from '../../support/client.ts';
import { startLoad } from '../../support/load.ts';
import { outcomeOf } from '../../support/operation.ts';
import type { Operation } from '../../support/operation.ts';
import { percentile } from '../../support/percentile.ts';
import { between } from '../../support/random.ts';
import { until } from '../../support/until.ts';
import type { Check } from '../suite.ts';
import { MINUTE_MS, aheadForMinuteIn, crash, judge, scenario, startTrial } from './trial.ts';
import type { Trial } from './trial.ts';

const KEY = 'a-key';
/** A day that is used up in seconds; the headers are about the minute alone. */
const SMALL_DAY = { perMinute: 1_000, perDay: 200 };
const SMALL_DAY_ARGS = ['--plan', '1000/200'];

/** Creates pets at the first replica, each with its own name, and notes the operations. */
function createsOf({ fleet }: Trial) {
  const operations: Operation[] = [];
  const { address } = fleet.process(0);
  const create = (name: string, { key = KEY, waitSeconds = 60, ...rest }: CreateOptions = {}) =>
    createPet(address, { key, pet: { name, categoryId: '1' }, waitSeconds, operations, ...rest });
  const createMany = (count: number, name: string, options?: CreateOptions) =>
    Array.from({ length: count }, (_, index) => create(`${name} ${index}`, options));
  return { operations, address, create, createMany };
}

interface CreateOptions {
  readonly key?: string;
  readonly waitSeconds?: number;
  readonly signal?: AbortSignal;
}

const KILL_AT = 160;
/** The reserve of one in a hundred, and what was on its way when the process was killed. */
const MIN_AFTER_KILL = 180;

export const killed: readonly Check[] = [
  { place: 'redis', replicas: 3 },
  { place: 'state-file', replicas: 1 },
].map(({ place, replicas }) =>
  scenario(
    { name: `killed-${place}`, goal: 'kill -9 at 80 % of the day: the day is never exceeded', processes: replicas },
    async (bench) => {
      const args = [...SMALL_DAY_ARGS, ...(replicas > 1 ? [] : ['--state-file', await bench.stateFile()])];
      const trial = await startTrial(bench, { plan: SMALL_DAY, replicas, args, latencyMs: [40, 120] });
      const { petApi, fleet } = trial;
      const { endpoints } = fleet;
      const load = startLoad({ endpoints, key: KEY, clientsPerReplica: 4, random: bench.random, waitSeconds: () => 5 });
      await until(() => petApi.log.length >= KILL_AT);
      const atKill = petApi.log.length;
      await crash(trial, [...endpoints.keys()]);
      await setTimeout(15_000);
      await load.stop();
      const calls = petApi.log.length;
      const problems = calls < MIN_AFTER_KILL ? [`only ${calls} calls, at least ${MIN_AFTER_KILL} expected`] : [];
      const measured = `killed at ${atKill}, ${calls} of ${SMALL_DAY.perDay} in the end`;
      return judge({ trial, operations: load.operations, measured, problems });
    },
  ),
);

/** What one key sends at a time; other calls wait. */
const IN_FLIGHT = 50;
const WAITING = 200;
const WARM_UP = 1_500;
const WARM_UP_AT_A_TIME = 25;
const REFUSED_WITHIN_MS = 100;
const RESPONSES_AFTER_MS = 1_000;
const GONE_WITHIN_MS = 8_000;

export const sigterm: readonly Check[] = ['redis', 'state-file'].map((place) =>
  scenario(
    {
      name: `sigterm-${place}`,
      goal: `${WAITING} refused within ${REFUSED_WITHIN_MS} ms, exit 0 within ${GONE_WITHIN_MS / 1000} s, no permit lost`,
    },
    async (bench) => {
      const withRedis = place === 'redis';
      const args = withRedis ? [] : ['--state-file', await bench.stateFile()];
      const trial = await startTrial(bench, { plan: PLANS.pro, replicas: 1, withRedis, args, latencyMs: [0, 0] });
      const { petApi, fleet } = trial;
      const { operations, address, create, createMany } = createsOf(trial);
      // With its code compiled, as in a process that has served for a while.
      for (let index = 0; index < WARM_UP; index += WARM_UP_AT_A_TIME) {
        await Promise.all(createMany(WARM_UP_AT_A_TIME, `earlier ${index}`, { key: 'another-key', waitSeconds: 1 }));
      }
      await create('first');
      const { promise: held, resolve: respond } = Promise.withResolvers<void>();
      petApi.fault = () => ({ held });
      const ownCalls = () => petApi.log.filter(({ key }) => key === KEY).length;
      const creates = createMany(IN_FLIGHT + WAITING, 'pet');
      await until(async () => ownCalls() === 1 + IN_FLIGHT && (await askQueued(address, KEY)) === WAITING);
      const stoppedMs = performance.now();
      fleet.process(0).kill('SIGTERM');
      void setTimeout(RESPONSES_AFTER_MS).then(respond);
      const refused = (await Promise.all(creates)).filter((operation) => outcomeOf(operation) === 'RATE_LIMITED');
      const code = await fleet.process(0).exited;
      const goneMs = Math.round(performance.now() - stoppedMs);
      const refusedMs = Math.round(Math.max(...refused.map(({ endedMs }) => endedMs - stoppedMs)));
      await fleet.restart(0);
      const used = await askDayUsed(fleet.process(0).address, KEY);

      const problems: string[] = [];
      if (refused.length !== WAITING) problems.push(`${refused.length} were refused, ${WAITING} expected`);
      if (refusedMs > REFUSED_WITHIN_MS) problems.push(`the last was refused after ${refusedMs} ms`);
      if (code !== 0) problems.push(`it ended with ${code}`);
      if (goneMs > GONE_WITHIN_MS) problems.push(`it was gone after ${goneMs} ms`);
      if (used !== ownCalls()) problems.push(`${ownCalls()} calls arrived, the next process counts ${used}`);
      const measured = `refused in ${refusedMs} ms, gone in ${goneMs} ms, ${used} of ${ownCalls()} counted after`;
      return judge({ trial, operations, measured, problems });
    },
  ),
);

const WAITERS = 900;
const STAYS_SHARE = 0.1;
/** When the window begins that the waiters wait for, and from when until when they leave around it. */
const WINDOW_IN_MS = 30_000;
const LEAVES_MS = [-5_000, 900] as const;
/** Until petql knows that a connection was closed. */
const NOTICED_MS = 250;

/** Most clients that wait leave, up to the very moment in which their turn comes. */
export const abandoned = scenario(
  { name: 'abandoned', goal: '90 % of the waiters leave: nothing is sent for them, permits exact', processes: 1 },
  async (bench) => {
    const { random } = bench;
    const upstreamAheadMs = aheadForMinuteIn(WINDOW_IN_MS);
    const trial = await startTrial(bench, { plan: PLANS.pro, replicas: 1, upstreamAheadMs });
    const { petApi } = trial;
    const { operations, address, create, createMany } = createsOf(trial);
    await Promise.all(createMany(PLANS.pro.perMinute, 'early', { waitSeconds: 69 }));
    const windowMs = Math.ceil(petApi.now() / MINUTE_MS) * MINUTE_MS;
    const leftAtMs = new Map<string, number>();
    const creates = Array.from({ length: WAITERS }, (_, index) => {
      const name = `waiter ${index}`;
      const leaving = new AbortController();
      if (random() >= STAYS_SHARE) {
        void setTimeout(windowMs + between(random, ...LEAVES_MS) - petApi.now()).then(() => {
          leftAtMs.set(name, petApi.now());
          leaving.abort();
        });
      }
      return create(name, { waitSeconds: 69, signal: leaving.signal });
    });
    await until(async () => (await askQueued(address, KEY)) === WAITERS);
    const inTimeMs = windowMs + LEAVES_MS[0] - petApi.now();
    const outcomes = Map.groupBy(await Promise.all(creates), (operation) => outcomeOf(operation));
    const gone = outcomes.get('left')?.length ?? 0;
    const created = outcomes.get('created')?.length ?? 0;
    // Calls in flight for clients that left are settled by then.
    const { log } = petApi;
    await until(async () => (await askDayUsed(address, KEY)) >= log.length);
    await setTimeout(1_000);
    const used = await askDayUsed(address, KEY);

    const problems = log
      .filter(({ name = '', atMs }) => atMs > (leftAtMs.get(name) ?? Infinity) + NOTICED_MS)
      .map(({ name }) => `${name} was sent though its client had left`);
    if (inTimeMs < 0) problems.push('the waiters came too late for this proof');
    if (gone + created !== WAITERS) problems.push(`${gone} left and ${created} created of ${WAITERS}`);
    if (used !== log.length) problems.push(`${used} counted, ${log.length} arrived`);
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
  async (bench) => {
    const trial = await startTrial(bench, { plan: SMALL_DAY, replicas: 1, args: SMALL_DAY_ARGS });
    const { operations, create, createMany } = createsOf(trial);
    await Promise.all(createMany(SMALL_DAY.perDay, 'early'));
    const used = trial.petApi.log.length;
    for (let index = 0; index < REFUSALS_WARM_UP + REFUSALS; index += 1) await create(`pet ${index}`);
    const tookMs = operations.slice(-REFUSALS).map(({ startedMs, endedMs }) => endedMs - startedMs);
    const p99Ms = percentile(tookMs, 0.99);
    const problems = p99Ms > REFUSED_P99_MS ? [`refused within ${p99Ms.toFixed(1)} ms`] : [];
    if (trial.petApi.log.length !== used) problems.push('calls arrived after the day was used up');
    const measured = `p50 ${percentile(tookMs, 0.5).toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`;
    return judge({ trial, operations, measured, problems });
  },
);
