import { afterEach, beforeEach, expect, test } from 'vitest';
import { createCallers } from '../../src/caller/callers.ts';
import type { Callers, CallersOptions } from '../../src/caller/callers.ts';
import { animalFact, listingFact } from '../../src/caller/fact.ts';
import type { Fact } from '../../src/caller/fact.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { createKnowledge } from '../../src/caller/knowledge.ts';
import { createLeftKnowledge } from '../../src/caller/left-knowledge.ts';
import type { LeftKnowledge } from '../../src/caller/left-knowledge.ts';
import { createNamedRecords } from '../../src/caller/named-records.ts';
import type { SharedListings } from '../../src/caller/shared-listings.ts';
import { systemClock as clock, steadyTime } from '../../src/clock.ts';
import type { Int64 } from '../../src/int64.ts';
import { silentLog } from '../../src/log.ts';
import { openStateFile } from '../../src/store/state-file.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { PetApi } from '../../src/upstream/pet-api.ts';
import { modelPet } from './model-store.ts';

const PETS = [1, 2, 3].map((id) => modelPet(id));
const id = (number: number) => String(number) as Int64;
const REX = { name: 'Rex', categoryId: id(1), status: undefined };

let calls: string[];
let callers: Callers;

beforeEach(() => {
  calls = [];
  callers = start();
});
afterEach(() => callers.close());

function start(more: Partial<CallersOptions> = {}): Callers {
  const answer = (name: string, value: unknown) => {
    calls.push(name);
    return Promise.resolve({ outcome: { kind: 'ok', value }, sent: true, rateLimit: undefined });
  };
  const petApi = {
    listPets: (_status: unknown, { apiKey }: { apiKey: string }) =>
      answer(`list of ${apiKey}`, { pets: PETS, complete: true }),
    createPet: (_pet: unknown, { apiKey }: { apiKey: string }) => answer(`create of ${apiKey}`, modelPet(4)),
  } as unknown as PetApi;
  const rules = { plan: { perMinute: 100, perDay: 10_000, known: true }, probeMs: 5_000 };
  const ledger = createMemoryLedger({ rules, now: steadyTime(clock), log: silentLog });
  const upstreamClock = createUpstreamClock(clock);
  return createCallers({ petApi, ledger, upstreamClock, clock, ...more });
}

/** What one request has. A second one makes its caller one who came back, and is not forgotten so soon. */
const pets = (key: string) =>
  callers.withKey(key).pets({
    deadlineMs: clock.elapsed() + 10_000,
    freshness: readFreshness(undefined, { maxAgeMs: 60_000, maxStaleMs: 600_000 }),
  });

/** So many that whoever came before them is forgotten. */
async function othersCome(): Promise<void> {
  for (let other = 0; other < 1_500; other += 1) callers.withKey(`other ${other}`);
  // Whoever is busy stays.
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
  for (let other = 1_500; other < 3_000; other += 1) callers.withKey(`other ${other}`);
}

test('more keys than are remembered ask in turn, and each pays for one call', async () => {
  const keys = Array.from({ length: 2_500 }, (_, index) => `key ${index}`);
  for (const round of [1, 2, 3]) {
    for (const key of keys) expect(await pets(key).list(undefined, 20)).toEqual(PETS);
    expect([round, calls.length]).toEqual([round, keys.length]);
  }
});

test('whoever comes back after a creation of its own knows of it', async () => {
  const request = pets('a');
  await request.list(undefined, 20);
  await request.create(REX);
  await othersCome();
  expect(await pets('a').byId(id(4))).toEqual(modelPet(4));
  expect(calls).toEqual(['list of a', 'create of a']);
  await pets('a').list(undefined, 20);
  expect(calls).toEqual(['list of a', 'create of a', 'list of a']);
});

test('whoever is in the midst of a creation is not forgotten, however long its record takes', async () => {
  const { records } = openStateFile(':memory:', steadyTime(clock));
  const { promise, resolve } = Promise.withResolvers<string>();
  callers = start({ submits: { records: createNamedRecords(records, () => promise), leaseMs: 5_000 } });
  const request = pets('a');
  await request.list(undefined, 20);
  const creating = request.create(REX, 'once');
  await othersCome();
  resolve('a name');
  await creating;
  await pets('a').list(undefined, 20);
  expect(calls).toEqual(['list of a', 'create of a', 'list of a']);
});

test('nobody gets what another one knew', async () => {
  await pets('a').list(undefined, 20);
  await othersCome();
  await pets('b').list(undefined, 20);
  expect(calls).toEqual(['list of a', 'list of b']);
});

test('among replicas nothing is kept of whoever has left, since writes of the others would not be heard', async () => {
  const own = { ...unheard, share: () => undefined };
  callers = start({ listings: { join: () => own } as unknown as SharedListings });
  await pets('a').list(undefined, 20);
  await othersCome();
  await pets('a').list(undefined, 20);
  expect(calls).toEqual(['list of a', 'list of a']);
});

const unheard = {
  sync: () => Promise.resolve(),
  glance: () => undefined,
  wrote: () => Promise.resolve(),
  leave() {},
  writes: 0,
};

test('a fact that comes back says what it said', () => {
  const left = createLeftKnowledge();
  const facts = [
    listingFact('all', PETS, true, 10),
    listingFact('sold', PETS.slice(0, 1), false, 20),
    animalFact(id(7), modelPet(7), 30),
    animalFact(id(8), null, 40),
  ];
  left.keep('key', facts);
  const again = left.take('key');
  const said = ({ shows, animal, ...plain }: (typeof facts)[number]) => ({
    ...plain,
    shown: (['all', 'sold', 'pending'] as const).map(shows),
    animals: [1, 7, 8, 9].map((number) => animal(id(number))),
  });
  expect(again.map(said)).toEqual(facts.map(said));
  expect(left.take('key')).toEqual([]);
});

const ALL = { kind: 'listing', listing: 'all' } as const;
const FIVE = { kind: 'animal', id: id(5) } as const;
const seen = animalFact(id(5), modelPet(5), 1_000);
const goneSince = listingFact('all', PETS, true, 60_000);

test('an animal that was there before a complete listing does not disprove it, whichever is learnt first', () => {
  for (const facts of [
    [seen, goneSince],
    [goneSince, seen],
  ]) {
    const knowledge = createKnowledge();
    for (const fact of facts) knowledge.learn(fact);
    expect(knowledge.find(FIVE)?.pets).toEqual([]);
    expect(knowledge.find(ALL)?.pets).toEqual(PETS);
    expect(knowledge.size()).toBe('small');
  }
});

test('whoever comes back knows what it knew, also of an animal that is gone', () => {
  const left = createLeftKnowledge();
  left.keep('key', [seen, goneSince]);
  expect(left.take('key').map(({ asOfMs }) => asOfMs)).toEqual([1_000, 60_000]);
  left.keep('key', [seen, goneSince]);
  const knowledge = createKnowledge();
  for (const fact of left.take('key')) knowledge.learn(fact);
  expect(knowledge.find(FIVE)?.pets).toEqual([]);
  expect(knowledge.find(ALL)?.pets).toEqual(PETS);
});

/** What 250 callers take, each with one listing of three animals of its own. */
const HALF_BYTES = 250 * (250 + 3 * 160);

test('animals that nobody shares are bounded, and a listing that many share counts once', () => {
  const shared = createLeftKnowledge(HALF_BYTES);
  const own = createLeftKnowledge(HALF_BYTES);
  for (let key = 0; key < 500; key += 1) {
    shared.keep(`key ${key}`, [listingFact('all', PETS, true, 0)]);
    own.keep(`key ${key}`, [listingFact('all', [...PETS], true, 0)]);
  }
  const known = (left: typeof own) =>
    Array.from({ length: 500 }, (_, key) => left.take(`key ${key}`).length).reduce((sum, facts) => sum + facts, 0);
  expect([known(shared), known(own)]).toEqual([500, 250]);
});

test.each<[string, (left: LeftKnowledge, key: string, facts: readonly Fact[]) => void]>([
  [
    'callers that leave twice',
    (left, key, facts) => {
      left.keep(key, facts);
      left.keep(key, left.take(key));
    },
  ],
  [
    'callers that share them with one that has come back',
    (left, key, facts) => {
      left.keep(`${key} too`, facts);
      left.keep(key, facts);
      left.take(`${key} too`);
    },
  ],
])('animals of %s are bounded', (_who, leave) => {
  const left = createLeftKnowledge(HALF_BYTES);
  const keys = Array.from({ length: 500 }, (_, index) => `key ${index}`);
  for (const key of keys) leave(left, key, [listingFact('all', [...PETS], true, 0)]);
  const known = keys.flatMap((key) => left.take(key)).length;
  expect(known).toBeGreaterThan(240);
  expect(known).toBeLessThanOrEqual(250);
});

test('one long name takes the room of many animals', () => {
  const left = createLeftKnowledge(HALF_BYTES);
  left.keep('short', [listingFact('all', PETS, true, 0)]);
  for (const key of ['one', 'other', 'third'])
    left.keep(key, [animalFact(id(7), { ...modelPet(7), name: 'x'.repeat(40_000) }, 0)]);
  expect(['short', 'one', 'other', 'third'].map((key) => left.take(key).length)).toEqual([0, 0, 1, 1]);
});
