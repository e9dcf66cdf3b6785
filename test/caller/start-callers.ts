import { createCallers } from '../../src/caller/callers.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { steadyTime, systemClock as clock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import type { Plan } from '../../src/plan.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { Listing, PetApi, UpstreamAnswer } from '../../src/upstream/pet-api.ts';
import { modelPet } from './model-store.ts';

/** An answer that brought this, with the headers of a plan's minute of which one call is used. */
export function answered<T>(value: T, { perMinute }: Plan): UpstreamAnswer<T> {
  const nowMs = Date.now();
  const reset = Math.floor(nowMs / 1000) + 50;
  const rateLimit = { limit: perMinute, remaining: perMinute - 1, reset, retryAfterMs: undefined, dateMs: nowMs };
  return { outcome: { kind: 'ok', value }, sent: true, rateLimit };
}

/** What tells that the store is large, so that animals that it does not show are a get each. */
export const HUNDRED: Listing = {
  pets: Array.from({ length: 100 }, (_, index) => modelPet(index)),
  complete: false,
};

/** Callers with a plan that is known, each request of which is answered by a call where one may be spent, and waits for minutes. */
export function startCallers(petApi: Partial<PetApi>, plan: Plan) {
  const rules = { plan: { ...plan, known: true }, probeMs: 5_000 };
  const ledger = createMemoryLedger({ rules, now: steadyTime(clock), log: silentLog });
  const upstreamClock = createUpstreamClock(clock);
  const callers = createCallers({ petApi: petApi as PetApi, ledger, upstreamClock, clock });
  const freshness = readFreshness(undefined, { maxAgeMs: 0, maxStaleMs: 600_000 });
  return {
    callers,
    freshness,
    ask: (apiKey: string, signal?: AbortSignal) =>
      callers.withKey(apiKey).pets({ deadlineMs: clock.elapsed() + 300_000, freshness, signal: () => signal }),
  };
}
