import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ListingName } from '../../src/caller/call.ts';
import type { Demand } from '../../src/caller/demand.ts';
import { animalFact, listingFact } from '../../src/caller/fact.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { createKnowledge } from '../../src/caller/knowledge.ts';
import { createReads } from '../../src/caller/reads.ts';
import type { CallerReads } from '../../src/caller/reads.ts';
import type { ListingsListener } from '../../src/caller/shared-listings.ts';
import { PetqlError } from '../../src/errors.ts';
import type { Pet } from '../../src/pet.ts';
import type { Passage, Throttle } from '../../src/throttle/throttle.ts';
import type { PetApi, UpstreamAnswer, UpstreamOutcome } from '../../src/upstream/pet-api.ts';
import { anyDemand, anyListing, createModelStore, found, listed, modelPet } from './model-store.ts';
import type { ModelStore } from './model-store.ts';
import { steadyRoute } from './steady-route.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 4_000);
const DEFAULTS = { maxAgeMs: 1_000, maxStaleMs: 600_000 };

/** A store that grows, with all that it ever was. */
interface History {
  readonly versions: readonly { readonly store: ModelStore; readonly sinceMs: number }[];
  add(): Pet;
}

function createHistory(animals: number, now: () => number): History {
  const pets = Array.from({ length: animals }, (_, index) =>
    modelPet(index + 1, index % 3 === 0 ? 'sold' : 'available'),
  );
  const versions = [{ store: createModelStore([...pets]), sinceMs: -Infinity }];
  return {
    versions,
    add() {
      const pet = modelPet(pets.length + 1, 'sold');
      pets.push(pet);
      versions.push({ store: createModelStore([...pets]), sinceMs: now() });
      return pet;
    },
  };
}

type Step =
  | { readonly kind: 'foreign' }
  | { readonly kind: 'write' }
  /** Another replica lists, and shares it. */
  | { readonly kind: 'others'; readonly listing: ListingName }
  | { readonly kind: 'read'; readonly demand: Demand; readonly cacheControl: string | undefined }
  | { readonly kind: 'wait'; readonly ms: number };

/** Of what a write changes, most of all. */
const wanted: fc.Arbitrary<Demand> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<Demand>({ kind: 'listing', listing: 'all' }, { kind: 'listing', listing: 'sold' }),
  },
  { weight: 2, arbitrary: anyDemand },
);

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('read' as const),
        demand: wanted,
        cacheControl: fc.constantFrom(undefined, undefined, 'no-cache', 'max-age=1', 'max-age=0'),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('foreign' as const, 'write' as const) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('others' as const), listing: anyListing }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(10, 900, 5_000) }) },
  ),
  { minLength: 1, maxLength: 40 },
);

interface Read {
  readonly demand: Demand;
  /** The last version that the caller had written before it began. */
  readonly floor: number;
  readonly askedAtMs: number;
  readonly strict: boolean;
  readonly answered: Promise<{ pets: readonly Pet[]; asOfMs: number; versions: number } | PetqlError>;
}

test('whatever is interleaved, each answer was true at a moment within its age, and after the last write before it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.constantFrom(3, 97, 99, 100, 150),
      steps,
      fc.nat(),
      async (scheduler, animals, plan, luck) => {
        let nowMs = 10_000;
        const history = createHistory(animals, () => nowMs);
        let calls = 0;
        const latest = () => history.versions.length - 1;
        const fails = () => (calls += 1) % 7 === luck % 11;
        const petApi = modelPetApi(scheduler, history, fails);
        const { reads, others } = readsOver(petApi, () => nowMs);
        let floor = 0;
        let writes = 0;
        let total = 0;
        const done: Read[] = [];
        const writing: Promise<void>[] = [];

        const run = (step: Step) => {
          total += 1;
          if (step.kind === 'wait') nowMs += step.ms;
          else if (step.kind === 'foreign') history.add();
          else if (step.kind === 'write') writing.push(write());
          else if (step.kind === 'others') writing.push(listElsewhere(step.listing));
          else done.push(read(step.demand, step.cacheControl));
        };
        const write = async () => {
          const sentAtMs = nowMs;
          await scheduler.schedule(Promise.resolve(), 'the write arrives');
          const pet = history.add();
          const version = latest();
          await scheduler.schedule(Promise.resolve(), 'the write is answered');
          void reads.wrote(animalFact(pet.id, pet, sentAtMs));
          floor = Math.max(floor, version);
          writes += 1;
        };
        const listElsewhere = async (listing: ListingName) => {
          const asOfMs = nowMs;
          const before = writes;
          const { pets, complete } = (history.versions.at(-1) as History['versions'][number]).store.list(listing);
          await scheduler.schedule(Promise.resolve(), 'what another replica has listed comes');
          if (writes === before) others.learn(listingFact(listing, pets, complete, asOfMs));
        };
        const read = (demand: Demand, cacheControl: string | undefined): Read => {
          const freshness = readFreshness(cacheControl, DEFAULTS);
          const known = reads.known(demand, freshness);
          const turn = { freshness, deadlineMs: nowMs + 100_000_000, signal: undefined, charge() {}, refund() {} };
          const answer = known ? Promise.resolve(known) : reads.wait(demand, turn);
          const answered = answer.then(
            ({ pets, asOfMs }) => ({ pets, asOfMs, versions: latest() }),
            (error: PetqlError) => error,
          );
          return { demand, floor, askedAtMs: nowMs, strict: cacheControl === 'no-cache', answered };
        };

        const sequence = scheduler.scheduleSequence(
          plan.map((step) => ({ label: step.kind, builder: async () => run(step) })),
        );
        while (!sequence.done || scheduler.count() > 0) await scheduler.waitOne();
        const waiting = new Set(done.map(({ answered }) => answered));
        for (const answered of waiting) void answered.then(() => waiting.delete(answered));
        while (waiting.size > 0) {
          if (scheduler.count() > 0) await scheduler.waitOne();
          // What failed rests for a moment before it is tried again.
          else await setImmediate();
        }
        await scheduler.waitIdle();
        await Promise.all(writing);

        expect(total).toBe(plan.length);
        for (const one of done) expect(wrongWith(one, await one.answered, history)).toBeUndefined();
      },
    ),
    { numRuns: RUNS },
  );
});

/** What is not true of an answer, or undefined. */
function wrongWith(read: Read, answer: Awaited<Read['answered']>, { versions }: History): string | undefined {
  if (answer instanceof PetqlError) return answer.code === 'DOWNSTREAM_SERVICE_ERROR' ? undefined : answer.code;
  const truths = versions.slice(read.floor, answer.versions + 1).filter((_version, index) => {
    const next = versions[read.floor + index + 1];
    return (next?.sinceMs ?? Infinity) >= answer.asOfMs;
  });
  const said = JSON.stringify(answer.pets);
  if (!truths.some(({ store }) => JSON.stringify(direct(read.demand, store)) === said)) return `never true: ${said}`;
  return read.strict && answer.asOfMs < read.askedAtMs ? 'older than the request' : undefined;
}

function direct(demand: Demand, store: ModelStore): readonly Pet[] {
  if (demand.kind === 'listing') return store.list(demand.listing).pets;
  const pet = store.get(demand.id);
  return pet ? [pet] : [];
}

/** Reads the store when the call arrives, and answers later; each when the scheduler says so. */
function modelPetApi(scheduler: fc.Scheduler, { versions }: History, fails: () => boolean): PetApi {
  const call = async <T>(name: string, look: (store: ModelStore) => UpstreamOutcome<T>): Promise<UpstreamAnswer<T>> => {
    const failed = fails();
    await scheduler.schedule(Promise.resolve(), `${name} arrives`);
    const outcome: UpstreamOutcome<T> = failed
      ? { kind: 'failed', status: 500, code: undefined }
      : look((versions.at(-1) as History['versions'][number]).store);
    await scheduler.schedule(Promise.resolve(), `${name} is answered`);
    return { outcome, sent: true, rateLimit: undefined };
  };
  return {
    listPets: (status) => call(`list ${status}`, (store) => listed(store, status)),
    getPet: (id) => call(`get ${id}`, (store) => found(store, id)),
    createPet: () => Promise.reject(new Error("writes are the test's own")),
  };
}

function readsOver(petApi: PetApi, elapsed: () => number): { reads: CallerReads; others: ListingsListener } {
  let others: ListingsListener | undefined;
  const reads = createReads({
    apiKey: 'a key',
    petApi,
    throttle: OPEN,
    refusedKey: { remainingMs: () => 0, error: () => new PetqlError('UNAUTHENTICATED', ''), refuse() {}, accept() {} },
    getRoute: steadyRoute(),
    knowledge: createKnowledge(),
    allowance: { allows: () => true, spend() {}, refund() {} },
    clock: { now: elapsed, elapsed },
    share(listener) {
      others = listener;
      return { sync: async () => {}, glance() {}, writes: '', share() {}, wrote: async () => {}, leave() {} };
    },
    retryQuota: { called() {}, room: Infinity, take: () => true },
    retryPausesMs: [0, 0],
    onRetry() {},
  });
  return { reads, others: others as unknown as ListingsListener };
}

/** Lets everything through, as soon as others have had their turn. */
const OPEN: Throttle = {
  async pass<T>(
    turn: { readonly signal?: AbortSignal | undefined },
    send: () => Promise<UpstreamAnswer<T>> | undefined,
  ) {
    await Promise.resolve();
    if (turn.signal?.aborted) return { kind: 'refused', reason: 'aborted', retryAfterMs: 0, window: 'MINUTE' };
    const sending = send();
    return (sending ? { kind: 'answered', answer: await sending } : { kind: 'unused' }) as Passage<T>;
  },
  standing: () => undefined,
  refreshed: () => Promise.reject(new Error('nobody asks')),
  outlook: () => ({ waitMs: 0, refused: { kind: 'refused', reason: 'plan', retryAfterMs: 0, window: 'MINUTE' } }),
  waiting: () => 0,
  toldBy: () => Promise.resolve(true),
  isBusy: () => false,
  close: () => Promise.resolve(),
};
