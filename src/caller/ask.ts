import type { Int64 } from '../int64.ts';
import type { PetApi, UpstreamAnswer, UpstreamOutcome } from '../upstream/pet-api.ts';
import type { Call } from './call.ts';
import { animalFact, listingFact } from './fact.ts';
import type { Fact } from './fact.ts';
import type { GetRoute } from './get-route.ts';

/** Sends a call for a caller, and makes a fact of what it brings: as of the moment when it was sent, by `clock.elapsed()`. */
export type Ask = (call: Call, sentAtMs: number) => Promise<UpstreamAnswer<Fact>>;

export function createAsk(petApi: PetApi, getRoute: GetRoute, apiKey: string): Ask {
  return async (call, sentAtMs) => {
    if (call.kind === 'list') {
      const answer = await petApi.listPets(call.listing === 'all' ? undefined : call.listing, { apiKey });
      if (answer.outcome.kind !== 'ok') return { ...answer, outcome: answer.outcome };
      const { pets, complete } = answer.outcome.value;
      return { ...answer, outcome: { kind: 'ok', value: listingFact(call.listing, pets, complete, sentAtMs) } };
    }
    const tellRoute = getRoute.asked();
    const answer = await petApi.getPet(call.id, { apiKey });
    if (answer.sunsetMs !== undefined) getRoute.sunsetTold(answer.sunsetMs);
    tellRoute(isRouteThere(call.id, answer.outcome));
    if (answer.outcome.kind !== 'ok' && answer.outcome.kind !== 'not-found')
      return { ...answer, outcome: answer.outcome };
    const pet = answer.outcome.kind === 'ok' ? answer.outcome.value : null;
    return { ...answer, outcome: { kind: 'ok', value: animalFact(call.id, pet, sentAtMs) } };
  };

  /** Undefined where the answer says nothing of it: a service that fails may have the route or not. */
  function isRouteThere(id: Int64, { kind }: UpstreamOutcome<unknown>): boolean | undefined {
    if (kind === 'ok') return true;
    if (kind === 'not-found') return getRoute.provesAbsence;
    // Many routers take digits alone for an id, and anybody may ask for one below zero.
    return kind === 'route-gone' && !id.startsWith('-') ? false : undefined;
  }
}
