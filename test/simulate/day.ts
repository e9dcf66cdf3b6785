import { createGateway } from '../../src/index.ts';
import type { Plan } from '../../src/plan.ts';
import { createPetApi } from '../support/pet-api.ts';
import { STATUSES, createPetStore } from '../support/pet-store.ts';
import { createRandom } from '../support/random.ts';
import { startVirtualTime } from '../support/virtual-time.ts';

export interface DayOptions {
  readonly plan: Plan;
  readonly maxAgeMs: number;
  readonly maxStaleMs: number;
  /** Pets in the store; every minute others change one of them. */
  readonly pets: number;
  readonly durationMs: number;
  /** Which queries are sent, and when: each entry is one query, again and again. */
  readonly load: readonly LoadEntry[];
}

export interface LoadEntry {
  readonly query: string;
  readonly firstMs: number;
  readonly everyMs: number;
}

export interface DayResult {
  readonly operations: number;
  readonly failed: number;
  readonly calls: number;
  /** 429s of the upstream. */
  readonly refused: number;
  /** The oldest age of each operation's data, in milliseconds, in the order of the operations; NaN where it failed. */
  readonly agesMs: readonly number[];
  /** When each operation started, in milliseconds since the start. */
  readonly startedAtMs: readonly number[];
}

const START_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
const LATENCY_MS = [20, 20] as const;
const CHANGED_EVERY_MS = 60_000;
const KEY = 'a-key';

/** One key's day on virtual time, over a pet API that counts strictly. */
export async function simulateDay({ plan, durationMs, load, pets, ...ages }: DayOptions): Promise<DayResult> {
  const agesMs: number[] = [];
  const startedAtMs: number[] = [];
  let failed = 0;
  let pending = 0;
  await loadGraphqlServer();
  using time = startVirtualTime(START_MS);
  const store = createPetStore({ size: pets, now: Date.now });
  const petApi = createPetApi({
    planOf: () => ({ ...plan, windows: 'fixed', tells: 'minute' }),
    storeOf: () => store,
    latencyMs: LATENCY_MS,
  });
  const gateway = createGateway({ petApiUrl: PET_API_URL, dispatcher: petApi.connect(), ...ages });
  const chance = createRandom(1);
  const timers = [setInterval(() => store.change(chance), CHANGED_EVERY_MS)];
  for (const { query, firstMs, everyMs } of load) {
    setTimeout(() => {
      void run(query);
      timers.push(setInterval(() => void run(query), everyMs));
    }, firstMs);
  }
  await time.run(() => Date.now() - START_MS >= durationMs);
  for (const timer of timers) clearInterval(timer);
  await time.run(() => pending === 0);
  const closing = gateway.close();
  await time.run(() => true);
  await closing;
  return {
    operations: agesMs.length,
    failed,
    calls: petApi.log.length,
    refused: petApi.log.filter(({ status }) => status === 429).length,
    agesMs,
    startedAtMs,
  };

  async function run(document: string): Promise<void> {
    const elapsedMs = Date.now() - START_MS;
    if (elapsedMs >= durationMs) return;
    const operation = agesMs.push(NaN) - 1;
    startedAtMs.push(elapsedMs);
    pending += 1;
    const { errors, extensions } = await gateway.execute({ document, apiKey: KEY });
    pending -= 1;
    if (errors) failed += 1;
    else agesMs[operation] = (extensions as { petql: { oldestAgeMs?: number } }).petql.oldestAgeMs ?? 0;
  }
}

const PET_API_URL = 'http://pet-api.test/v1';

/** A gateway loads its GraphQL server at its first operation, by real time. */
async function loadGraphqlServer(): Promise<void> {
  const gateway = createGateway({ petApiUrl: PET_API_URL });
  await gateway.execute({ document: '{ __typename }' });
  await gateway.close();
}

/** So many different queries, each sent so often: lists and single pets, in turn. */
export function steadyLoad(queries: readonly string[], everyMs: number): LoadEntry[] {
  return queries.map((query, index) => ({ query, firstMs: Math.round((index * everyMs) / queries.length), everyMs }));
}

/** Lists, and single pets spread over the store. The cost is that of whole lists, though one pet of each is shown. */
export function mixedQueries(lists: number, ids: number, pets: number): string[] {
  const filters = ['', ...STATUSES.map((status) => `status: ${status.toUpperCase()}, `)];
  return [
    ...filters.slice(0, lists).map((filter) => `{ pets(${filter}limit: 1) { id } }`),
    ...Array.from({ length: ids }, (_, index) => `{ pet(id: ${1 + Math.floor((index * pets) / ids)}) { id } }`),
  ];
}
