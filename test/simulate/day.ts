import { createGateway } from '../../src/index.ts';
import type { GatewayOptions } from '../../src/index.ts';
import type { Plan } from '../../src/plan.ts';
import { createPetApi } from '../support/pet-api/pet-api.ts';
import { STATUSES, createPetStore } from '../support/pet-api/pet-store.ts';
import { createRandom } from '../support/random.ts';
import { startVirtualTime } from '../support/virtual-time.ts';

export interface DayOptions extends Pick<GatewayOptions, 'maxAgeMs' | 'maxStaleMs'> {
  readonly plan: Plan;
  /** Pets in the store; every minute others change one of them. */
  readonly pets: number;
  /** How many lists are queried, 4 at most: all pets, and those of each status. */
  readonly lists: number;
  /** How many single pets are queried, spread over the store. */
  readonly ids: number;
  /** How often each of these queries is sent. */
  readonly everyMs: number;
  readonly durationMs: number;
}

export interface Day {
  readonly queries: number;
  readonly operations: readonly DayOperation[];
  readonly calls: number;
  /** 429s of the upstream. */
  readonly refused: number;
}

export interface DayOperation {
  /** Since the start of the day. */
  readonly startedMs: number;
  /** Of its oldest data; NaN where it failed. */
  ageMs: number;
}

const START_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
const CHANGED_EVERY_MS = 60_000;
const PET_API_URL = 'http://pet-api.test/v1';

/** One API key's day on virtual time, over a pet API that counts strictly. */
export async function simulateDay(options: DayOptions): Promise<Day> {
  const { plan, pets, lists, ids, everyMs, durationMs, ...ages } = options;
  const queries = queriesOf(lists, ids, pets);
  using time = await startVirtualTime(START_MS);
  const store = createPetStore({ size: pets, now: Date.now });
  const planOf = () => ({ ...plan, windows: 'fixed', tells: 'minute' }) as const;
  const petApi = createPetApi({ planOf, storeOf: () => store, latencyMs: [20, 20] });
  const gateway = createGateway({ petApiUrl: PET_API_URL, dispatcher: petApi.connect(), ...ages });
  const operations: DayOperation[] = [];
  const chance = createRandom(1);
  const changes = setInterval(() => store.change(chance), CHANGED_EVERY_MS);
  let pending = 0;
  let isOver = false;
  const end = () => void (isOver = true);
  sendAll().then(end, end);
  await time.run(() => isOver && pending === 0);
  clearInterval(changes);
  const closing = gateway.close();
  await time.run(() => true);
  await closing;
  const refused = petApi.log.filter(({ status }) => status === 429).length;
  return { queries: queries.length, operations, calls: petApi.log.length, refused };

  /** Sends the queries in turn, at a steady rate. */
  async function sendAll(): Promise<void> {
    for (let startedMs = 0; startedMs < durationMs; startedMs = (operations.length * everyMs) / queries.length) {
      await new Promise((resolve) => void setTimeout(resolve, START_MS + startedMs - Date.now()));
      const operation = { startedMs, ageMs: NaN };
      void run(queries[operations.push(operation) % queries.length] ?? '', operation);
    }
  }

  async function run(document: string, operation: DayOperation): Promise<void> {
    pending += 1;
    const { errors, extensions } = await gateway.execute({ document, apiKey: 'a-key' });
    pending -= 1;
    if (!errors) operation.ageMs = (extensions as { petql: { oldestAgeMs?: number } }).petql.oldestAgeMs ?? 0;
  }
}

/** One pet of each list is shown, and a call costs as much as for a whole list. */
function queriesOf(lists: number, ids: number, pets: number): string[] {
  const filters = ['', ...STATUSES.map((status) => `status: ${status.toUpperCase()}, `)];
  return [
    ...filters.slice(0, lists).map((filter) => `{ pets(${filter}limit: 1) { id } }`),
    ...Array.from({ length: ids }, (_, index) => `{ pet(id: ${1 + Math.floor((index * pets) / ids)}) { id } }`),
  ];
}
