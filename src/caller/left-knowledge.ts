import type { Pet } from '../pet.ts';
import type { Call } from './call.ts';
import { animalFact, listingFact } from './fact.ts';
import type { Fact } from './fact.ts';
import { createHeldAnimals } from './held-animals.ts';

/**
 * What callers knew that had to be forgotten, for when they come back: many keys that each ask now and then would else cost a
 * call each time, and have nothing to be served while the plan is used up. It takes little, since the animals of a listing are
 * the same objects for all who were answered the same.
 */
export interface LeftKnowledge {
  /** Facts of a caller that leaves; of single animals, those learnt last come last. */
  keep(apiKey: string, facts: readonly Fact[]): void;
  /** Those of a caller that comes back, who has them from now on. */
  take(apiKey: string): readonly Fact[];
}

const MOST_BYTES = 20_000_000;
/** What a caller costs, and each of its facts, beside the animals. */
const CALLER_BYTES = 100;
const FACT_BYTES = 150;
/** Of single animals, those learnt last. */
const MOST_SINGLE = 20;

/** A fact without what it has worked out, which is most of it. */
interface LeftFact {
  readonly call: Call;
  readonly pets: readonly Pet[];
  readonly complete: boolean;
  readonly asOfMs: number;
}

/** @param mostBytes default 20 MB. */
export function createLeftKnowledge(mostBytes = MOST_BYTES): LeftKnowledge {
  /** Whoever left longest ago comes first. */
  const left = new Map<string, readonly LeftFact[]>();
  const animals = createHeldAnimals();
  let ownBytes = 0;
  return {
    keep(apiKey, facts) {
      const single = new Set(facts.filter(({ call }) => call.kind === 'get').slice(-MOST_SINGLE));
      const kept = facts.filter((fact) => fact.call.kind === 'list' || single.has(fact));
      if (kept.length > 0) add(apiKey, kept.map(leftFact));
    },
    take(apiKey) {
      return remove(apiKey).map(factAgain);
    },
  };

  function add(apiKey: string, facts: readonly LeftFact[]): void {
    remove(apiKey);
    left.set(apiKey, facts);
    ownBytes += bytesOf(facts);
    for (const { pets } of facts) animals.hold(pets);
    for (const oldest of left.keys()) {
      if (ownBytes + animals.bytes <= mostBytes) break;
      remove(oldest);
    }
  }

  function remove(apiKey: string): readonly LeftFact[] {
    const facts = left.get(apiKey);
    if (!facts) return [];
    left.delete(apiKey);
    ownBytes -= bytesOf(facts);
    for (const { pets } of facts) animals.release(pets);
    return facts;
  }
}

function bytesOf(facts: readonly LeftFact[]): number {
  return CALLER_BYTES + FACT_BYTES * facts.length;
}

function leftFact(fact: Fact): LeftFact {
  const { call, complete, asOfMs } = fact;
  const pet = call.kind === 'get' ? fact.animal(call.id) : undefined;
  const pets = call.kind === 'list' ? fact.shows(call.listing) : pet && [pet];
  return { call, pets: pets ?? [], complete, asOfMs };
}

function factAgain({ call, pets, complete, asOfMs }: LeftFact): Fact {
  return call.kind === 'list'
    ? listingFact(call.listing, pets, complete, asOfMs)
    : animalFact(call.id, pets[0] ?? null, asOfMs);
}
