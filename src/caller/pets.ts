import type { Clock } from '../clock.ts';
import type { Int64 } from '../int64.ts';
import type { NewPet, Pet, PetStatus } from '../pet.ts';
import type { Throttle, Turn } from '../throttle/throttle.ts';
import type { PetApi, UpstreamAnswer, UpstreamCall } from '../upstream/pet-api.ts';
import type { WireError } from '../upstream/wire.ts';
import { createDemandLoader } from './demand-loader.ts';
import type { Demand } from './demand.ts';
import { readError, refusedError, writeError } from './failure-errors.ts';
import type { RefusedKey } from './refused-key.ts';

/** What one request reads and writes for its caller. Every failure is a PetqlError. */
export interface Pets {
  /** Up to `limit` animals with this status, or of all. */
  list(status: PetStatus | undefined, limit: number): Promise<readonly Pet[]>;
  /** The animal, or null when there is none. */
  byId(id: Int64): Promise<Pet | null>;
  /** The animal that was added, or what the upstream finds wrong with it. */
  create(pet: NewPet): Promise<{ pet: Pet } | { refusal: WireError }>;
}

/** How long a request's calls may wait, and how it can be given up. */
export type RequestLife = Pick<Turn, 'deadlineMs' | 'signal'>;

export interface PetsOptions {
  readonly apiKey: string;
  readonly petApi: PetApi;
  readonly throttle: Throttle;
  readonly refusedKey: RefusedKey;
  readonly clock: Clock;
  readonly life: RequestLife;
}

/** For one request: its equal reads are one call. */
export function createPets({ apiKey, petApi, throttle, refusedKey, clock, life }: PetsOptions): Pets {
  const animals = createDemandLoader((demands) => Promise.all(demands.map(settle)));

  return {
    async list(status, limit) {
      const pets = await animals.load({ kind: 'listing', status });
      return pets.slice(0, limit);
    },
    async byId(id) {
      const [pet] = await animals.load({ kind: 'animal', id });
      return pet ?? null;
    },
    async create(pet) {
      const answer = await call('write', (options) => petApi.createPet(pet, options));
      const { outcome } = answer;
      if (outcome.kind === 'ok') return { pet: outcome.value };
      if (outcome.kind === 'invalid') return { refusal: outcome.error };
      throw writeError(outcome, answer.sent, refusedLately());
    },
  };

  function settle(demand: Demand): Promise<readonly Pet[] | Error> {
    return read(demand).catch((error: Error) => error);
  }

  async function read(demand: Demand): Promise<readonly Pet[]> {
    if (demand.kind === 'listing') {
      const answer = await call('read', (options) => petApi.listPets(demand.status, options));
      if (answer.outcome.kind === 'ok') return answer.outcome.value.pets;
      throw readError(answer.outcome, refusedLately());
    }
    const answer = await call('read', (options) => petApi.getPet(demand.id, options));
    if (answer.outcome.kind === 'ok') return [answer.outcome.value];
    if (answer.outcome.kind === 'not-found') return [];
    throw readError(answer.outcome, refusedLately());
  }

  function refusedLately(): boolean {
    return throttle.standing()?.refusedLately ?? false;
  }

  /** Through the throttle, and once more after a 429: the upstream refused that one, so it did not happen. */
  async function call<T>(
    kind: Turn['kind'],
    send: (options: UpstreamCall) => Promise<UpstreamAnswer<T>>,
  ): Promise<UpstreamAnswer<T>> {
    for (;;) {
      const passage = await throttle.pass({ kind, ...life }, () =>
        // Another call may have found out meanwhile that the upstream does not take this key.
        refusedKey.remainingMs() > 0 ? undefined : send({ apiKey }),
      );
      if (passage.kind === 'refused') throw refusedError(passage, clock.now());
      if (passage.kind === 'unused') throw refusedKey.error();
      const { answer } = passage;
      if (answer.outcome.kind === 'unauthenticated') refusedKey.refuse();
      else if (answer.rateLimit) refusedKey.accept();
      if (answer.outcome.kind !== 'rate-limited') return answer;
    }
  }
}
