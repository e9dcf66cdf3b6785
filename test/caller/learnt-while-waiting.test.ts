import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Demand } from '../../src/caller/demand.ts';
import { listingFact } from '../../src/caller/fact.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { createKnowledge } from '../../src/caller/knowledge.ts';
import { createReads } from '../../src/caller/reads.ts';
import type { ServedAnswer } from '../../src/caller/reads.ts';
import { createRefusedKey } from '../../src/caller/refused-key.ts';
import type { ListingsListener } from '../../src/caller/shared-listings.ts';
import type { Int64 } from '../../src/int64.ts';
import { modelPet } from './model-store.ts';
import { steadyRoute } from './steady-route.ts';

const NOW_MS = 100_000;
const MAX_AGE_MS = 1_000;
const PETS = [modelPet(1, 'available'), modelPet(2, 'sold')];
const SOLD: Demand = { kind: 'listing', listing: 'sold' };
const animal = (id: number): Demand => ({ kind: 'animal', id: String(id) as Int64 });

interface Place {
  readonly signal: AbortSignal;
  readonly send: () => unknown;
}

/** Reads of one replica that the plan lets nothing through for, until `open`. */
function startReads({ singleReadsWork = true } = {}) {
  const calls: string[] = [];
  const places: Place[] = [];
  let listener: ListingsListener | undefined;
  const called = (name: string) => {
    calls.push(name);
    return new Promise<never>(() => undefined);
  };
  const clock = { now: () => NOW_MS, elapsed: () => NOW_MS };
  const throttle = {
    pass({ signal }: Pick<Place, 'signal'>, send: Place['send']) {
      places.push({ signal, send });
      return new Promise<never>(() => undefined);
    },
    standing: () => undefined,
    outlook: () => ({ waitMs: 0 }),
  };
  const reads = createReads({
    apiKey: 'key',
    petApi: { listPets: (status = 'all') => called(status), getPet: called } as any,
    throttle: throttle as any,
    refusedKey: createRefusedKey(clock),
    getRoute: steadyRoute(singleReadsWork),
    knowledge: createKnowledge(),
    allowance: { allows: () => true, spend: () => undefined, refund: () => undefined },
    clock,
    share(joined) {
      listener = joined;
      return { sync: () => Promise.resolve(), glance() {}, writes: '', share() {}, wrote: async () => {}, leave() {} };
    },
    retryQuota: { called: () => undefined, room: 1, take: () => true },
    onRetry: () => undefined,
  });
  return {
    calls,
    /** The answer, once there is one. */
    async wait(demand: Demand, cacheControl?: string): Promise<{ answer?: ServedAnswer }> {
      const freshness = readFreshness(cacheControl, { maxAgeMs: MAX_AGE_MS, maxStaleMs: 0 });
      const waiting: { answer?: ServedAnswer } = {};
      const { signal } = new AbortController();
      const turn = {
        freshness,
        deadlineMs: NOW_MS + 3_600_000,
        signal,
        charge: () => undefined,
        refund: () => undefined,
      };
      void reads.wait(demand, turn).then((answer) => Object.assign(waiting, { answer }));
      await setImmediate();
      return waiting;
    },
    async othersList(ageMs: number, complete = true) {
      listener?.learn(listingFact('all', PETS, complete, NOW_MS - ageMs));
      await setImmediate();
    },
    placesWanted: () => places.filter(({ signal }) => !signal.aborted).length,
    open: () => places.filter(({ signal }) => !signal.aborted).forEach(({ send }) => send()),
  };
}

test('whoever waits for the plan is given what another replica has found out, and makes no call', async () => {
  const { calls, wait, othersList, placesWanted, open } = startReads();
  const waiting = [await wait(SOLD), await wait(animal(1)), await wait(animal(404))];
  expect(placesWanted()).toBeGreaterThan(0);
  await othersList(MAX_AGE_MS);
  const asOfMs = NOW_MS - MAX_AGE_MS;
  expect(waiting.map(({ answer }) => answer)).toEqual([
    { pets: [PETS[1]], asOfMs, staleReason: undefined },
    { pets: [PETS[0]], asOfMs, staleReason: undefined },
    { pets: [], asOfMs, staleReason: undefined },
  ]);
  expect(placesWanted()).toBe(0);
  open();
  expect(calls).toEqual([]);
});

test.each([
  ['nothing stored', 'no-cache', 0],
  ['nothing stored, by its age', 'max-age=0', 0],
  ['what is younger', 'max-age=2', 2_001],
  ['what is younger, as is usual', undefined, MAX_AGE_MS + 1],
])('whoever takes %s makes its call all the same', async (_what, cacheControl, ageMs) => {
  const { calls, wait, othersList, open } = startReads();
  const waiting = await wait(SOLD, cacheControl);
  await othersList(ageMs);
  expect(waiting).toEqual({});
  open();
  expect(calls).toHaveLength(1);
});

test('of those that wait for the same, each is given what it takes', async () => {
  const { calls, wait, othersList, open } = startReads();
  const patient = await wait(SOLD);
  const strict = await wait(SOLD, 'no-cache');
  await othersList(0);
  expect(patient.answer?.pets).toEqual([PETS[1]]);
  expect(strict).toEqual({});
  open();
  expect(calls).toHaveLength(1);
});

test('a listing of another replica that does not show an animal is not asked for again', async () => {
  const { calls, wait, othersList, open } = startReads({ singleReadsWork: false });
  const waiting = await wait(animal(7));
  await othersList(0, false);
  expect(waiting).toEqual({});
  open();
  expect(calls).toEqual(['available']);
});
