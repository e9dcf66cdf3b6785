import type { Random } from '../prove/random.ts';
import type { ServiceAnswer, ServiceRequest } from '../prove/strict-upstream.ts';
import type { PetStore } from './pet-store.ts';

/** The service over all stores, which can be made to fail. */
export interface FailingService {
  serve(request: ServiceRequest): ServiceAnswer;
  /** From now on, which share of the requests fails: half of these are carried out all the same. */
  fail(share: number): void;
}

const STATUSES = [500, 502, 503, 504] as const;

export function createFailingService(storeOf: (key: string) => PetStore | undefined, random: Random): FailingService {
  let share = 0;
  return {
    serve(request) {
      const store = storeOf(request.key);
      if (!store) return failure(401);
      if (random() >= share) return store.serve(request);
      if (random() < 0.5) store.serve(request);
      return failure(STATUSES[Math.floor(random() * STATUSES.length)] ?? 500);
    },
    fail(next) {
      share = next;
    },
  };
}

function failure(status: number): ServiceAnswer {
  return { status, body: JSON.stringify({ code: 'failed', message: 'It failed.', status }) };
}
