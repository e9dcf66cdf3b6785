import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createCallers } from '../../src/caller/callers.ts';
import type { Demand } from '../../src/caller/demand.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { systemClock } from '../../src/clock.ts';
import type { PetqlError } from '../../src/errors.ts';
import { MOMENT_MS } from '../../src/in-time.ts';
import { silentLog } from '../../src/log.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { PetApi, UpstreamAnswer, UpstreamOutcome } from '../../src/upstream/pet-api.ts';
import { later } from '../writes/simulation.ts';
import { anyDemand, anyStore, found, listed } from './model-store.ts';
import type { ModelStore } from './model-store.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 1_000);
const DEFAULTS = { maxAgeMs: 1_000, maxStaleMs: 600_000 };
/** The longest that a call may take. */
const TIMEOUT_MS = 1_500;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Fate = 'ok' | 'timeout' | 'unavailable';

interface Journey {
  readonly fate: Fate;
  readonly tookMs: number;
}

type Step =
  | { readonly kind: 'create' }
  | { readonly kind: 'pause'; readonly ms: number }
  | {
      readonly kind: 'read';
      readonly demand: Demand;
      readonly cacheControl: string | undefined;
      readonly waitMs: number;
    };

const journeys: fc.Arbitrary<Journey[]> = fc.array(
  fc.oneof(
    fc.constant<Journey>({ fate: 'timeout', tookMs: TIMEOUT_MS }),
    fc.record({ fate: fc.constantFrom<Fate>('ok', 'unavailable'), tookMs: fc.integer({ min: 1, max: TIMEOUT_MS }) }),
  ),
  { minLength: 1, maxLength: 12 },
);

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('read' as const),
        demand: anyDemand,
        cacheControl: fc.constantFrom(undefined, 'no-cache', 'max-age=1', 'max-age=0, max-stale=0'),
        waitMs: fc.constantFrom(0, 300, 1_000, 3_000),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('pause' as const), ms: fc.integer({ min: 1, max: 1_500 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('create' as const) }) },
  ),
  { minLength: 1, maxLength: 30 },
);

test('whatever becomes of the calls, a read is answered by its deadline and a call, and told of those alone that failed meanwhile', async () => {
  await fc.assert(
    fc.asyncProperty(anyStore, journeys, steps, fc.constantFrom(3, 60, 1_000), async (store, ways, plan, perMinute) => {
      const failedAtMs: number[] = [];
      let calls = 0;
      const next = () => ways[calls++ % ways.length] as Journey;
      const callers = createCallers({
        petApi: failingPetApi(store, next, () => failedAtMs.push(systemClock.elapsed())),
        ledger: createMemoryLedger({
          rules: { plan: { perMinute, perDay: 100_000, known: true }, probeMs: 5_000 },
          now: () => Date.now(),
          log: silentLog,
          firstEver: true,
        }),
        upstreamClock: createUpstreamClock(systemClock),
        clock: systemClock,
      });
      const caller = callers.withKey('a key');
      const late: string[] = [];
      const outdated: string[] = [];
      const asked: Promise<unknown>[] = [];
      for (const step of plan) {
        if (step.kind === 'pause') await vi.advanceTimersByTimeAsync(step.ms);
        else if (step.kind === 'create') asked.push(create());
        else asked.push(read(step));
      }
      const all = Promise.all(asked);
      await vi.advanceTimersByTimeAsync(60_000);
      await all;
      await Promise.all([callers.close(), vi.advanceTimersByTimeAsync(1_000)]);
      expect(late).toEqual([]);
      expect(outdated).toEqual([]);

      async function create(): Promise<void> {
        const life = { deadlineMs: systemClock.elapsed() + 1_000, freshness: readFreshness(undefined, DEFAULTS) };
        const added = { name: 'Rex', categoryId: '1', status: undefined } as any;
        await caller
          .pets(life)
          .create(added)
          .catch(() => undefined);
      }

      async function read({ demand, cacheControl, waitMs }: Step & { kind: 'read' }): Promise<void> {
        const startedMs = systemClock.elapsed();
        const life = { deadlineMs: startedMs + waitMs, freshness: readFreshness(cacheControl, DEFAULTS) };
        const pets = caller.pets(life);
        const answer =
          demand.kind === 'animal'
            ? pets.byId(demand.id)
            : pets.list(demand.listing === 'all' ? undefined : demand.listing, 100);
        await Promise.resolve(answer).catch(({ code }: PetqlError) => {
          const mine = failedAtMs.some((atMs) => atMs >= startedMs);
          if (/^(?:GATEWAY_TIMEOUT|DOWNSTREAM_SERVICE_ERROR)$/.test(code) && !mine) outdated.push(code);
        });
        const beyondMs = systemClock.elapsed() - startedMs - waitMs - TIMEOUT_MS;
        if (beyondMs > MOMENT_MS) late.push(`${JSON.stringify(demand)} by ${beyondMs} ms`);
      }
    }),
    { numRuns: RUNS },
  );
});

function failingPetApi(store: ModelStore, next: () => Journey, onFailure: () => void): PetApi {
  return {
    listPets: (status) => call(() => listed(store, status)),
    getPet: (id) => call(() => found(store, id)),
    createPet: (pet) => call(() => ({ kind: 'ok', value: { ...pet, id: '1000' as any } })),
  };

  async function call<T>(look: () => UpstreamOutcome<T>): Promise<UpstreamAnswer<T>> {
    const { fate, tookMs } = next();
    await later(tookMs);
    if (fate !== 'ok') onFailure();
    if (fate === 'timeout')
      return { outcome: { kind: 'no-answer', reason: 'timeout' }, sent: true, rateLimit: undefined };
    const headers = {
      limit: undefined,
      remaining: undefined,
      reset: undefined,
      retryAfterMs: undefined,
      dateMs: undefined,
    };
    const outcome: UpstreamOutcome<T> = fate === 'ok' ? look() : { kind: 'failed', status: 503, code: undefined };
    return { outcome, sent: true, rateLimit: headers };
  }
}
