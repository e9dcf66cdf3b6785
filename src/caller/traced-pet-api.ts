import type { TraceContext } from '../trace-context.ts';
import type { PetApi } from '../upstream/pet-api.ts';

/**
 * Passes a trace on with each call.
 *
 * @param trace of the request that pays for the call that is being made. A call can answer many requests; it stands in the
 * trace of the one that it is charged to, which is charged in the same moment.
 */
export function tracedPetApi(petApi: PetApi, trace: () => TraceContext | undefined): PetApi {
  return {
    listPets: (status, call) => petApi.listPets(status, { ...call, trace: trace() }),
    getPet: (id, call) => petApi.getPet(id, { ...call, trace: trace() }),
    createPet: (pet, call) => petApi.createPet(pet, { ...call, trace: trace() }),
  };
}
