import { createGateway } from '../../../src/index.ts';
import { createPetApi } from '../../support/pet-api/pet-api.ts';
import { LISTS } from '../../support/pet-api/contract.ts';
import { createPetStore } from '../../support/pet-api/pet-store.ts';
import { listField } from '../../support/pet-documents.ts';
import { UNLIMITED } from '../../support/pet-api/strict-plan.ts';
import { PET_API_URL } from '../../support/start-gateway.ts';
import { startVirtualTime } from '../../../src/program/simulate/virtual-time.ts';
import type { Trace, TraceOperation, Wanted } from './trace.ts';

/** What petql made of a trace. Times are since the start of the trace. */
export interface Replay {
  /** Calls that read, sent since the start. */
  readonly calls: number;
  /** When each create was answered. */
  readonly createdAtMs: readonly number[];
  /** Operations that failed or got stale data: then fewer calls prove nothing. */
  readonly problems: readonly string[];
}

const START_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
const LEG_MS = 25;
/** From the first contact to the start: nothing is fresh any more. */
const PAUSE_MS = 5_000;
const apiKey = 'a-key';
const CREATE = 'mutation { createPet(input: { name: "New", categoryId: 1 }) { pet { id } } }';
const EVERY_LIST = `{ ${LISTS.map((list, index) => `f${index}: ${listField(list)} { id }`).join(' ')} }`;

/**
 * Replays a trace on virtual time.
 *
 * @param isFirstContact whether the gateway has seen nothing of the store. Default: each list, a while ago.
 */
export async function replay(trace: Trace, maxAgeMs: number, isFirstContact = false): Promise<Replay> {
  const { pets, operations, createsAtMs } = trace;
  using time = await startVirtualTime(START_MS);
  const store = createPetStore({ size: pets, now: Date.now });
  const petApi = createPetApi({ planOf: () => UNLIMITED, storeOf: () => store, latencyMs: [LEG_MS, LEG_MS] });
  const gateway = createGateway({
    petApiUrl: PET_API_URL,
    dispatcher: petApi.connect(),
    maxAgeMs,
    // It never binds.
    plan: '99999999/999999999',
  });
  const problems: string[] = [];
  const createdAtMs: number[] = [];

  if (!isFirstContact) {
    await until(gateway.execute({ document: EVERY_LIST, apiKey }));
    await until(sleep(PAUSE_MS));
    petApi.log.length = 0;
  }
  const startedAtMs = Date.now();
  await until(Promise.all([...operations.map(read), ...createsAtMs.map(create)]));
  await until(gateway.close());
  return { calls: petApi.log.filter(({ kind }) => kind !== 'create').length, createdAtMs, problems };

  async function until<T>(promise: Promise<T>): Promise<T> {
    let isOver = false;
    const end = () => void (isOver = true);
    promise.then(end, end);
    await time.run(() => isOver);
    return promise;
  }

  async function read(operation: TraceOperation): Promise<void> {
    await sleep(startedAtMs + operation.atMs - Date.now());
    const { errors, extensions } = await gateway.execute({ document: documentOf(operation), apiKey });
    const problem = errors?.[0]?.message ?? extensions?.['petql'].staleReason;
    if (problem !== undefined) problems.push(`at ${operation.atMs} ms: ${problem}`);
  }

  async function create(atMs: number): Promise<void> {
    await sleep(startedAtMs + atMs - Date.now());
    const { errors } = await gateway.execute({ document: CREATE, apiKey });
    if (errors) problems.push(`at ${atMs} ms: ${errors[0]?.message}`);
    createdAtMs.push(Date.now() - startedAtMs);
  }
}

function documentOf({ reads }: TraceOperation): string {
  return `{ ${reads.map((wanted, index) => `f${index}: ${fieldOf(wanted)}`).join(' ')} }`;
}

function fieldOf(wanted: Wanted): string {
  if (typeof wanted === 'number') return `pet(id: ${wanted}) { id }`;
  return `${listField(wanted)} { id }`;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
