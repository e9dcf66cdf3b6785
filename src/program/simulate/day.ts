import { createGateway } from '../../index.ts';
import type { Plan } from '../../common/plan.ts';
import { PET_STATUSES } from '../../pets/pet.ts';
import { createSandbox } from '../sandbox/sandbox.ts';
import { queriesOf } from './load.ts';
import type { Load } from './load.ts';
import { startVirtualTime } from './virtual-time.ts';

/** How one plan served a load. */
export interface Day {
  readonly plan: Plan;
  /** The age in milliseconds of the oldest data of each operation, in their order; NaN where it failed. */
  readonly ages: Float64Array;
  /** When upstream calls were made, in milliseconds since the start. */
  readonly callsAtMs: readonly number[];
  /** Calls that the pet API rejected with 429. */
  readonly refusedCalls: number;
}

/** Midnight, since 24 hours from another moment would touch two days, and use both. */
const START_MS = Date.UTC(2026, 10, 21);
/** Travel time of a call, and of its response. */
const LATENCY_MS = 20;
const API_KEY = 'simulated';

/**
 * Runs one API key's day on virtual time, over the sandbox, which counts strictly.
 *
 * @param onProgress gets the share of the day that is over, a hundred times.
 */
export async function simulateDay(plan: Plan, load: Load, onProgress: (share: number) => void): Promise<Day> {
  const { everyMs, durationMs, maxAgeMs, maxStaleMs, planShare = 100 } = load;
  const queries = queriesOf(load);
  const betweenMs = everyMs / queries.length;
  const ages = new Float64Array(Math.ceil(durationMs / betweenMs)).fill(NaN);

  using time = await startVirtualTime(START_MS);
  const sandbox = createSandbox({ keys: { [API_KEY]: plan }, pets: petsOf(load), latencyMs: LATENCY_MS });
  const gateway = createGateway({
    ...sandbox.gatewayOptions,
    plan: `${plan.perMinute}/${plan.perDay}`,
    planShare,
    maxAgeMs,
    maxStaleMs,
  });

  let pending = 0;
  const sending = sendAll();
  let isSent = false;
  sending.finally(() => (isSent = true)).catch(() => {});
  await time.run(() => isSent && pending === 0);
  await sending;

  const closing = gateway.close();
  await time.run(() => true);
  await closing;
  await sandbox.close();

  const callsAtMs = sandbox.calls.map(({ atMs }) => atMs - START_MS);
  const refusedCalls = sandbox.calls.filter(({ status }) => status === 429).length;
  return { plan, ages, callsAtMs, refusedCalls };

  /** Sends the queries in turn, at a steady rate. */
  async function sendAll(): Promise<void> {
    const progressEvery = Math.ceil(ages.length / 100);
    for (let index = 0; index < ages.length; index += 1) {
      const waitMs = START_MS + index * betweenMs - Date.now();
      await new Promise((resolve) => void setTimeout(resolve, waitMs));
      if (index % progressEvery === 0) onProgress(index / ages.length);
      void run(queries[index % queries.length] ?? '', index);
    }
  }

  async function run(document: string, index: number): Promise<void> {
    pending += 1;
    const { errors, extensions } = await gateway.execute({ document, apiKey: API_KEY });
    pending -= 1;
    if (!errors) ages[index] = extensions?.petql.oldestAgeMs ?? 0;
  }
}

/** As many of each status. */
function petsOf({ pets }: Load) {
  return Array.from({ length: pets }, (_, index) => ({
    name: `Pet ${index + 1}`,
    status: PET_STATUSES[index % PET_STATUSES.length],
  }));
}
