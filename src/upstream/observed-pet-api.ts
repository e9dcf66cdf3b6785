import type { Clock } from '../clock.ts';
import type { Events, UpstreamCallEvent } from '../events.ts';
import type { PetApi, UpstreamAnswer, UpstreamOutcome } from './pet-api.ts';

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
    events.upstreamCall({ operation, ...resultOf(answer.outcome), tookMs: elapsed() - sentAtMs });
    return answer;
  }
}

function resultOf(outcome: UpstreamOutcome<unknown>): Pick<UpstreamCallEvent, 'reason' | 'status'> {
  if (outcome.kind === 'no-answer') return { reason: outcome.reason, status: undefined };
  return { reason: outcome.kind, status: 'status' in outcome ? outcome.status : STATUS_OF[outcome.kind] };
}

/** Of outcomes that come with one status alone. */
const STATUS_OF = {
  ok: undefined,
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'rate-limited': 429,
} as const;
