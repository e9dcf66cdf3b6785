import { DispatchedCall } from '../dispatched-call.ts';
import type { Int64 } from '../pets/int64.ts';
import { PET_STATUSES } from '../pets/pet.ts';
import { PetStore } from '../sandbox/pet-store.ts';
import { createResponder } from '../sandbox/responder.ts';
import type { ResponderOptions } from '../sandbox/responder.ts';
import type { GatewayOptions } from '../settings/settings.ts';
import type { Plan } from '../plan.ts';

type Dispatcher = NonNullable<GatewayOptions['dispatcher']>;

interface SandboxDispatcherOptions extends Pick<ResponderOptions, 'onCall'> {
  /** The plan of the API key, which is in force from the first call on. */
  readonly plan: Plan;
  readonly apiKey: string;
  readonly pets: number;
}

/** Travel time of a call, and of its response. */
const LEG_MS = 20;

/** Connects to a sandbox in this process. It has no sockets, and each wait is a timer, so that virtual time moves it. */
export function createSandboxDispatcher({ plan, apiKey, pets: count, onCall }: SandboxDispatcherOptions): Dispatcher {
  const seeds = Array.from({ length: count }, (_, index) => ({
    name: `Pet ${index + 1}`,
    categoryId: '1' as Int64,
    status: PET_STATUSES[index % PET_STATUSES.length],
  }));
  const pets = new PetStore(undefined, seeds);
  const clock = { now: () => Date.now() };
  const respond = createResponder({ pets, keys: { [apiKey]: { name: '', ...plan } }, clock, onCall });

  return {
    async destroy() {
      pets.close();
    },

    dispatch({ method, path, headers, body }, handler) {
      const call = new DispatchedCall(handler);
      const { authorization } = headers as Record<string, string>;
      const text = typeof body === 'string' ? body : '';
      setTimeout(() => {
        if (call.isOver) return;
        const response = respond({ method, target: path, authorization, body: text });
        setTimeout(() => call.respond(response), LEG_MS);
      }, LEG_MS);
      return true;
    },
  };
}
