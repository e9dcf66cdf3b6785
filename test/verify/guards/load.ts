import { LISTS } from '../../support/pet-api/contract.ts';
import { listField } from '../../support/pet-documents.ts';
import type { Answer } from '../../support/operation.ts';
import { between, createRandom } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import type { Mix, Want } from './mixes.ts';

/** One operation that an honest client sends. */
export interface HonestOperation {
  /** Since the start of the run. */
  readonly atMs: number;
  readonly key: string;
  readonly visitor: string;
  readonly want: Want;
  readonly document: string;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** One read of a run: a list, a pet or several pets. */
export interface EndedRead {
  /** When the client asked for it, since the start of the run. */
  readonly atMs: number;
  readonly endedAtMs: number;
  /** Data of now, older data that says so, or an error. */
  readonly result: 'failed' | 'fresh' | 'stale';
}

/** What all honest operations of a run got. */
export interface Tally {
  readonly reads: EndedRead[];
  /** Pets that were created. */
  creates: number;
  /** Creates without a pet, also those whose outcome nobody knows. */
  uncreated: number;
  /** How often each error code came. */
  readonly codes: Record<string, number>;
  /** The longest time after which a refused client was to return. */
  maxToldMs: number;
}

const WANTS: readonly Want[] = ['list', 'pet', 'threePets', 'twentyPets', 'create'];
const DEFAULT_CLIENTS = 4;
/** A client comes again after its interval, or up to a fifth earlier or later. */
const JITTER = 0.2;
const PET = '{ id name status }';
const A_PET = `query ($id: ID!) { pet(id: $id) ${PET} }`;
const SOME_PETS = `query ($ids: [ID!]!) { petsById(ids: $ids) ${PET} }`;
const CREATE = 'mutation ($name: String!) { createPet(input: { name: $name, categoryId: 3 }) { pet { id } } }';

/** The keys of the honest clients. */
export function honestKeys({ keys }: Mix): string[] {
  return Array.from({ length: keys }, (_, index) => `honest-${index + 1}`);
}

/** Draws all operations of the honest clients, in order: they are the same whatever petql and the pet API do. */
export function drawOperations(mix: Mix, { seed, minutes }: { seed: number; minutes: number }): HonestOperation[] {
  const random = createRandom(seed);
  const keys = honestKeys(mix);
  const operations: HonestOperation[] = [];
  for (let client = 0; client < (mix.clients ?? DEFAULT_CLIENTS); client += 1) {
    const who = { key: keys[client % keys.length] ?? '', visitor: `visitor ${client + 1}` };
    for (const want of WANTS) {
      const everyMs = mix.every[want];
      if (everyMs === undefined) continue;
      for (let atMs = random() * everyMs; atMs < minutes * 60_000;) {
        operations.push({ ...who, atMs, want, ...drawRequest(want, mix, random) });
        atMs += everyMs * (1 + JITTER * (2 * random() - 1));
      }
    }
  }
  return operations.toSorted((a, b) => a.atMs - b.atMs);
}

function drawRequest(want: Want, { pets }: Mix, random: Random): Pick<HonestOperation, 'document' | 'variables'> {
  const id = () => String(between(random, 1, pets));
  switch (want) {
    case 'list': {
      const list = LISTS[between(random, 0, LISTS.length - 1)] ?? 'all';
      return { document: `{ ${listField(list)} ${PET} }`, variables: {} };
    }
    case 'pet':
      return { document: A_PET, variables: { id: id() } };
    case 'threePets':
    case 'twentyPets': {
      const ids = Array.from({ length: want === 'threePets' ? 3 : 20 }, id);
      return { document: SOME_PETS, variables: { ids } };
    }
    case 'create':
      return { document: CREATE, variables: { name: `Pet of ${random()}` } };
  }
}

export function newTally(): Tally {
  return { reads: [], creates: 0, uncreated: 0, codes: {}, maxToldMs: 0 };
}

/** Counts what a client got. */
export function count(
  tally: Tally,
  want: Want,
  { errors = [], extensions }: Answer,
  time: Omit<EndedRead, 'result'>,
): void {
  for (const {
    extensions: { code, retryAfterMs = 0 },
  } of errors) {
    tally.codes[code] = (tally.codes[code] ?? 0) + 1;
    if (code === 'RATE_LIMITED') tally.maxToldMs = Math.max(tally.maxToldMs, retryAfterMs);
  }

  const hasFailed = errors.length > 0;
  if (want === 'create') tally[hasFailed ? 'uncreated' : 'creates'] += 1;
  else tally.reads.push({ ...time, result: hasFailed ? 'failed' : extensions?.petql?.staleReason ? 'stale' : 'fresh' });
}
