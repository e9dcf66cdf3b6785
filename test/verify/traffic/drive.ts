import { startVirtualTime } from '../../../src/program/simulate/virtual-time.ts';
import { PLANS } from '../../../src/common/plan.ts';
import { percentile } from '../../../src/program/simulate/percentile.ts';
import { createPetApi } from '../../support/pet-api/pet-api.ts';
import type { PetApi } from '../../support/pet-api/pet-api.ts';
import { listField } from '../../support/pet-documents.ts';
import type { ListName } from '../../support/pet-api/contract.ts';
import { createPetStore } from '../../support/pet-api/pet-store.ts';
import { PETS, operationsOf } from './trace.ts';
import type { TrafficOperation, TrafficRow } from './trace.ts';

/** A gateway with a fetch handler. */
export interface Subject {
  readonly fetch: (request: Request) => Promise<Response> | Response;
  readonly close: () => Promise<void> | void;
}

/** What became of a trace. */
export interface Outcome {
  readonly operations: number;
  readonly answered: number;
  readonly calls: number;
  readonly refused: number;
  /** Of the refused calls, those before a `Retry-After` was over: any of them may have the key banned. */
  readonly early: number;
  readonly p95WaitMs: number;
  readonly medianAgeMs: number;
  readonly p95AgeMs: number;
  /** When each create was over. */
  readonly createdAtMs: readonly number[];
}

const START_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
const LEG_MS = [20, 60] as const;
/** A visitor waits no longer. */
export const DEADLINE_MS = 10_000;

/** Replays a trace on virtual time, over a pet API that counts a Free key strictly. */
export async function drive(rows: readonly TrafficRow[], start: (petApi: PetApi) => Subject): Promise<Outcome> {
  const operations = operationsOf(rows);
  using time = await startVirtualTime(START_MS);
  const store = createPetStore({ size: PETS, now: Date.now });
  const petApi = createPetApi({
    planOf: () => ({ ...PLANS.free, windows: 'fixed', tells: 'changing' }),
    storeOf: () => store,
    latencyMs: LEG_MS,
  });
  const subject = start(petApi);
  /** Of each operation's oldest data; NaN where it failed. */
  const ages = operations.map(() => NaN);
  const waits = operations.map(() => NaN);
  const createdAtMs: number[] = [];

  await until(Promise.all(operations.map(send)));
  await until(Promise.resolve(subject.close()));

  const refused = petApi.log.filter(({ status }) => status === 429);
  return {
    operations: operations.length,
    answered: ages.filter((age) => !Number.isNaN(age)).length,
    calls: petApi.log.length,
    refused: refused.length,
    early: earlyOf(petApi),
    p95WaitMs: percentile(waits, 0.95),
    medianAgeMs: percentile(ages, 0.5),
    p95AgeMs: percentile(ages, 0.95),
    createdAtMs,
  };

  async function until<T>(promise: Promise<T>): Promise<T> {
    let isOver = false;
    const end = () => void (isOver = true);
    promise.then(end, end);
    await time.run(() => isOver);
    return promise;
  }

  async function send(operation: TrafficOperation, index: number): Promise<void> {
    await sleep(operation.atMs);
    const leaving = new AbortController();
    const timer = setTimeout(() => leaving.abort(), DEADLINE_MS);
    const left = new Promise<void>((resolve) => leaving.signal.addEventListener('abort', () => resolve()));
    const result = await Promise.race([left, ask(operation, leaving.signal).catch(() => undefined)]);
    clearTimeout(timer);
    if (operation.rows[0]?.kind === 'create') createdAtMs.push(Date.now() - START_MS);
    if (!result || result.errors) return;
    waits[index] = Date.now() - START_MS - operation.atMs;
    ages[index] = result.extensions?.petql?.oldestAgeMs ?? 0;
  }

  async function ask(operation: TrafficOperation, signal: AbortSignal): Promise<any> {
    const response = await subject.fetch(
      new Request('http://localhost/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer a-key' },
        body: JSON.stringify({ query: documentOf(operation) }),
        signal,
      }),
    );
    return response.json();
  }
}

function earlyOf({ log }: PetApi): number {
  let pausedUntilMs = 0;
  let early = 0;
  for (const { atMs, retryAfterMs } of log) {
    if (atMs < pausedUntilMs) early += 1;
    if (retryAfterMs !== undefined) pausedUntilMs = Math.max(pausedUntilMs, atMs + retryAfterMs);
  }
  return early;
}

function documentOf({ rows }: TrafficOperation): string {
  const fields = rows.map((row, index) => `f${index}: ${fieldOf(row)}`).join(' ');
  return rows[0]?.kind === 'create' ? `mutation { ${fields} }` : `{ ${fields} }`;
}

function fieldOf({ kind, of, limit }: TrafficRow): string {
  if (kind === 'pet') return `pet(id: ${of}) { id name status }`;
  if (kind === 'list') return `${listField(of as ListName, limit)} { id name status }`;
  return `createPet(input: { name: "New", categoryId: 1, status: ${of.toUpperCase()} }) { pet { id } }`;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
