import type { Spans } from '../spans.ts';
import type { TraceContext } from '../trace-context.ts';
import type { PetApi, UpstreamAnswer } from '../upstream/pet-api.ts';

/**
 * Passes a trace on with each call, from the call's own span where there is one.
 *
 * @param trace of the request that pays for the call that is being made. A call can answer many requests; it stands in the
 * trace of the one that it is charged to, which is charged in the same moment.
 */
export function tracedPetApi(petApi: PetApi, spans: Spans, trace: () => TraceContext | undefined): PetApi {
  return {
    listPets: (status, call) => send('listPets', (own) => petApi.listPets(status, { ...call, trace: own })),
    getPet: (id, call) => send('getPet', (own) => petApi.getPet(id, { ...call, trace: own })),
    createPet: (pet, call) => send('createPet', (own) => petApi.createPet(pet, { ...call, trace: own })),
  };

  function send<T>(
    operation: keyof PetApi,
    call: (trace: TraceContext | undefined) => Promise<UpstreamAnswer<T>>,
  ): Promise<UpstreamAnswer<T>> {
    const parent = trace();
    const span = spans.call(operation, parent);
    if (!span) return call(parent);
    return call(span.trace).then((answer) => {
      span.end({ status: answer.status, problem: problemOf(answer) });
      return answer;
    });
  }
}

/** As OpenTelemetry has it for clients: the status where that is the error, or else what it is called here. */
function problemOf({ outcome, status }: UpstreamAnswer<unknown>): string | undefined {
  if (outcome.kind === 'ok') return undefined;
  if (outcome.kind === 'no-answer') return outcome.reason;
  return outcome.kind === 'unreadable' ? outcome.kind : String(status);
}
