import type { Clock } from '../clock.ts';
import type { Events, UpstreamCallEvent } from '../events.ts';
import type { PetApi, UpstreamAnswer } from './pet-api.ts';

/** Tells of every call, and changes nothing about it. */
export function observedPetApi(petApi: PetApi, { elapsed }: Clock, events: Events): PetApi {
  return {
    listPets: (status, call) => observe('listPets', petApi.listPets(status, call)),
    getPet: (id, call) => observe('getPet', petApi.getPet(id, call)),
    createPet: (pet, call) => observe('createPet', petApi.createPet(pet, call)),
  };

  async function observe<T>(
    operation: UpstreamCallEvent['operation'],
    sending: Promise<UpstreamAnswer<T>>,
  ): Promise<UpstreamAnswer<T>> {
    const sentAtMs = elapsed();
    const answer = await sending;
    const { outcome, status } = answer;
    const reason = outcome.kind === 'no-answer' ? outcome.reason : outcome.kind;
    events.upstreamCall({ operation, status, reason, tookMs: elapsed() - sentAtMs });
    return answer;
  }
}
