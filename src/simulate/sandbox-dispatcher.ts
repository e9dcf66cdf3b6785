import type { Int64 } from '../int64.ts';
import { openPetStore } from '../sandbox/pet-store.ts';
import { createResponder } from '../sandbox/responder.ts';
import type { SandboxCall } from '../sandbox/responder.ts';
import type { GatewayOptions } from '../settings.ts';
import type { Plan } from '../plan.ts';

type Dispatcher = NonNullable<GatewayOptions['dispatcher']>;

interface SandboxDispatcherOptions {
  /** The plan of the API key, which is in force from the first call on. */
  readonly plan: Plan;
  readonly apiKey: string;
  readonly pets: number;
  readonly onCall: (call: SandboxCall) => void;
}

/** How long a call takes there, and its response back. */
const LEG_MS = 20;
const STATUSES = ['available', 'pending', 'sold'] as const;

/** The sandbox in this process: no sockets, and every wait is a timer, so that virtual time moves it. */
export function createSandboxDispatcher({ plan, apiKey, pets: count, onCall }: SandboxDispatcherOptions): Dispatcher {
  const seeds = Array.from({ length: count }, (_, index) => ({
    name: `Pet ${index + 1}`,
    categoryId: '1' as Int64,
    status: STATUSES[index % STATUSES.length],
  }));
  const pets = openPetStore(undefined, seeds);
  const clock = { now: () => Date.now() };
  const respond = createResponder({ pets, keys: { [apiKey]: { name: '', ...plan } }, clock, onCall });

  return {
    async destroy() {
      pets.close();
    },
    dispatch({ method, path, headers, body }, handler) {
      let isOver = false;
      const controller = {
        aborted: false,
        paused: false,
        reason: null as Error | null,
        abort(reason: Error) {
          if (isOver) return;
          isOver = true;
          Object.assign(controller, { aborted: true, reason });
          handler.onResponseError?.(controller, reason);
        },
        pause() {},
        resume() {},
      };
      handler.onRequestStart?.(controller, {});
      setTimeout(() => {
        if (isOver) return;
        const { authorization } = headers as Record<string, string>;
        const text = typeof body === 'string' ? body : '';
        const response = respond({ method, target: path, authorization, body: text });
        setTimeout(() => {
          if (isOver) return;
          isOver = true;
          handler.onResponseStart?.(controller, response.status, { ...response.headers });
          handler.onResponseData?.(controller, Buffer.from(response.body));
          handler.onResponseEnd?.(controller, {});
        }, LEG_MS);
      }, LEG_MS);
      return true;
    },
  };
}
