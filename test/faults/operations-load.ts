import { setTimeout } from 'node:timers/promises';
import type { Int64 } from '../../src/int64.ts';
import { PET_STATUSES } from '../../src/pet.ts';
import type { Pet } from '../../src/pet.ts';
import type { SeedAnimal } from '../../src/sandbox/seed.ts';
import { between } from '../prove/random.ts';
import type { Random } from '../prove/random.ts';
import type { QueryAnswer, TestGateway } from '../support/start-gateway.ts';

/** A store that one listing shows whole, and that keeps room for what a load adds to it. */
export const SEEDS: readonly SeedAnimal[] = Array.from({ length: 30 }, (_, index) => ({
  name: `Seed ${index + 1}`,
  categoryId: String(index % 3) as Int64,
  status: PET_STATUSES[index % 3],
}));

/** One operation and what came of it. */
export interface Done {
  readonly kind: 'create' | 'get' | 'ids' | 'list';
  /** Of a creation, the name; of a listing, the status; else the ids. */
  readonly wanted: readonly string[];
  readonly tookMs: number;
  readonly answer: QueryAnswer;
}

export interface LoadOptions {
  readonly gateway: TestGateway;
  readonly random: Random;
  readonly keys: readonly string[];
  readonly perSecond?: number;
  readonly forMs: number;
  /** The share of creations. Default 0. */
  readonly creations?: number;
}

/** Operations of every kind, as many a second whatever becomes of them; settles when the last is answered. */
export async function runOperations(options: LoadOptions): Promise<Done[]> {
  const { random, perSecond = 50, forMs } = options;
  const running: Promise<Done>[] = [];
  const startedMs = performance.now();
  for (let number = 0; number < (forMs * perSecond) / 1000; number += 1) {
    await setTimeout(Math.max(0, startedMs + (number * 1000) / perSecond - performance.now()));
    running.push(runOne(options, `${Math.round(random() * 1e9)}-${number}`));
  }
  return Promise.all(running);
}

async function runOne({ gateway, random, keys, creations = 0 }: LoadOptions, name: string): Promise<Done> {
  const { kind, wanted, query } = chooseOperation(random, creations, name);
  const key = keys[between(random, 0, keys.length - 1)];
  // Most take what is known where a call fails; some take nothing but a new answer.
  const cacheControl = random() < 0.3 ? 'no-cache' : null;
  const startedMs = performance.now();
  const headers = { authorization: `Bearer ${key}`, 'cache-control': cacheControl };
  const answer = await gateway.query(query, { headers });
  return { kind, wanted, answer, tookMs: performance.now() - startedMs };
}

function chooseOperation(
  random: Random,
  creations: number,
  name: string,
): Pick<Done, 'kind' | 'wanted'> & { readonly query: string } {
  const status = PET_STATUSES[between(random, 0, 2)] ?? 'sold';
  const ids = Array.from({ length: between(random, 1, 10) }, () => String(between(random, 1, SEEDS.length + 3)));
  const fields = '{ id name categoryId status }';
  const kind = random() < creations ? 'create' : (READS[between(random, 0, 2)] ?? 'ids');
  switch (kind) {
    case 'create': {
      const input = `{ name: "${name}", categoryId: 9, status: SOLD }`;
      return { kind, wanted: [name], query: `mutation { created: createPet(input: ${input}) { pet ${fields} } }` };
    }
    case 'list':
      return { kind, wanted: [status], query: `{ pets(status: ${status.toUpperCase()}, limit: 100) ${fields} }` };
    case 'get':
      return { kind, wanted: ids.slice(0, 1), query: `{ pet(id: "${ids[0]}") ${fields} }` };
    default:
      return { kind, wanted: ids, query: `{ petsById(ids: ${JSON.stringify(ids)}) ${fields} }` };
  }
}

const READS = ['list', 'get', 'ids'] as const;

const TYPED = new Set(['DOWNSTREAM_SERVICE_ERROR', 'GATEWAY_TIMEOUT', 'OUTCOME_UNKNOWN']);

/**
 * What is wrong with an answer, or undefined: an error that is not of these kinds, or data that the store never held.
 *
 * @param store all its animals in the end; none of them ever changes.
 */
export function wrongWith({ kind, wanted, answer }: Done, store: readonly Pet[]): string | undefined {
  const { data, errors } = answer;
  const strange = errors?.find(({ extensions }) => !TYPED.has(extensions.code));
  if (strange) return `${strange.extensions.code}: ${strange.message}`;
  if (errors && kind !== 'create') return undefined;
  const held = (pet: any) => store.some((one) => JSON.stringify(shown(one)) === JSON.stringify(pet));
  const first = SEEDS.map((seed, index) => ({ ...seed, id: String(index + 1) }));
  if (kind === 'create') {
    const copies = store.filter(({ name }) => name === wanted[0]).length;
    if (copies > 1) return `${wanted[0]} was added ${copies} times`;
    if (data?.['created'] && copies === 0) return `${wanted[0]} was lost`;
    if (errors?.[0]?.extensions.code === 'DOWNSTREAM_SERVICE_ERROR' && copies > 0) return `${wanted[0]} was added`;
    return data?.['created'] && !held(data['created'].pet) ? `${wanted[0]} is another` : undefined;
  }
  if (kind === 'list') {
    const pets = data?.['pets'] as any[];
    if (!pets.every(held)) return 'an animal that was never there';
    const missing = first.filter(({ id, status }) => status === wanted[0] && !pets.some((pet) => pet.id === id));
    return missing.length > 0 ? `${missing.length} animals are missing` : undefined;
  }
  const pets = kind === 'get' ? [data?.['pet']] : (data?.['petsById'] as any[]);
  for (const [index, id] of wanted.entries()) {
    const pet = pets[index];
    const isSeed = Number(id) <= SEEDS.length;
    if (isSeed ? pet?.id !== id || !held(pet) : pet && !held(pet)) return `of ${id}: ${JSON.stringify(pet)}`;
  }
  return undefined;
}

function shown({ id, name, categoryId, status }: Pet) {
  return { id, name, categoryId, status: status?.toUpperCase() ?? null };
}
