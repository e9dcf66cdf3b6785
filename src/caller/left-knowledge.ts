import type { Pet } from '../pet.ts';
import type { Call } from './call.ts';
import { animalFact, listingFact } from './fact.ts';
import type { Fact } from './fact.ts';

/**
 * What callers knew that had to be forgotten, for when they come back: many keys that each ask now and then would else cost a
 * call each time, and have nothing to be served while the plan is used up. It takes little, since the animals of a listing are
 * the same objects for all who were answered the same.
 */
export interface LeftKnowledge {
  /** Facts of a caller that leaves, in the order in which they were learnt. */
  keep(apiKey: string, facts: readonly Fact[]): void;
  /** Those of a caller that comes back, who has them from now on. */
  take(apiKey: string): readonly Fact[];
}

/** Animals in all, each caller's own ones and one for the caller: some ten megabytes. */
const MOST_ANIMALS = 100_000;
/** Of single animals, those learnt last. */
const MOST_SINGLE = 20;

/** A fact without what it has worked out, which is most of it. */
interface LeftFact {
  readonly call: Call;
  readonly pets: readonly Pet[];
  readonly complete: boolean;
  readonly asOfMs: number;
}

export function createLeftKnowledge(mostAnimals = MOST_ANIMALS): LeftKnowledge {
  /** Whoever left longest ago comes first. */
  const left = new Map<string, readonly LeftFact[]>();
  /** In how many facts an array of animals is: it takes its room once, and for as long as it is in any. */
  const holders = new Map<readonly Pet[], number>();
  let size = 0;
  return {
    keep(apiKey, facts) {
      const single = facts.filter(({ call }) => call.kind === 'get').slice(-MOST_SINGLE);
      const kept = [...facts.filter(({ call }) => call.kind === 'list'), ...single];
      if (kept.length > 0) add(apiKey, kept.map(leftFact));
    },
    take(apiKey) {
      return remove(apiKey).map(factAgain);
    },
  };

  function add(apiKey: string, facts: readonly LeftFact[]): void {
    remove(apiKey);
    left.set(apiKey, facts);
    size += 1;
    for (const { pets } of facts) {
      const count = holders.get(pets) ?? 0;
      holders.set(pets, count + 1);
      if (count === 0) size += pets.length;
    }
    for (const oldest of left.keys()) {
      if (size <= mostAnimals) break;
      remove(oldest);
    }
  }

  function remove(apiKey: string): readonly LeftFact[] {
    const facts = left.get(apiKey);
    if (!facts) return [];
    left.delete(apiKey);
    size -= 1;
    for (const { pets } of facts) {
      const count = holders.get(pets) ?? 0;
      if (count > 1) holders.set(pets, count - 1);
      else {
        holders.delete(pets);
        size -= pets.length;
      }
    }
    return facts;
  }
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
