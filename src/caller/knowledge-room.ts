import { getHeapStatistics } from 'node:v8';
import type { Pet } from '../pet.ts';
import type { Fact } from './fact.ts';
import { animalBytes, createHeldAnimals } from './held-animals.ts';

/** Bounds the memory that the facts of all callers take together. Where it is full, what was learnt longest ago goes first. */
export interface KnowledgeRoom {
  /**
   * Takes a fact in, and lets go of older ones, of whichever caller they are, where there is no room for it.
   *
   * @param forget is called with the fact when it is let go for another one, and not when it is released.
   */
  keep(fact: Fact, forget: (fact: Fact) => void): Place;
  /** It is known no more; once for each place. */
  release(place: Place): void;
}

/** A fact in the room. */
export interface Place {
  readonly fact: Fact;
}

/**
 * A list, since a Map that is emptied from its front looks at ever more places where nothing is any more, and a fact in
 * tables that it has outgrown is found by a collection of the whole heap alone.
 */
interface LinkedPlace extends Place {
  readonly forget: (fact: Fact) => void;
  older: LinkedPlace | undefined;
  newer: LinkedPlace | undefined;
}

/** One listing for each of the most callers that are remembered, with room to spare. */
const MOST_BYTES = 200_000_000;
/** In a small container the heap is small. */
const MOST_OF_HEAP = 0.25;
/** What a fact costs beside its animals, and for each of them, once it has been asked for one by its id and for each status. */
const FACT_BYTES = 500;
const FOUND_BYTES = 50;

/** @param mostBytes default 200 MB, and a quarter of the heap at most. */
export function createKnowledgeRoom(
  mostBytes = Math.min(MOST_BYTES, MOST_OF_HEAP * getHeapStatistics().heap_size_limit),
): KnowledgeRoom {
  const animals = createHeldAnimals();
  let factsBytes = 0;
  let oldest: LinkedPlace | undefined;
  let newest: LinkedPlace | undefined;

  return {
    keep(fact, forget) {
      const pets = listedBy(fact);
      while (oldest && bytesWith(fact) > mostBytes) {
        const { fact: gone, forget: tell } = oldest;
        release(oldest);
        tell(gone);
      }
      if (pets) animals.hold(pets);
      factsBytes += ownBytes(fact);
      const place: LinkedPlace = { fact, forget, older: newest, newer: undefined };
      if (newest) newest.newer = place;
      else oldest = place;
      newest = place;
      return place;
    },
    release: (place) => release(place as LinkedPlace),
  };

  function bytesWith(fact: Fact): number {
    const pets = listedBy(fact);
    return factsBytes + ownBytes(fact) + animals.bytes + (pets ? animals.added(pets) : 0);
  }

  function release(place: LinkedPlace): void {
    const { older, newer, fact } = place;
    const pets = listedBy(fact);
    if (pets) animals.release(pets);
    factsBytes -= ownBytes(fact);
    if (older) older.newer = newer;
    else oldest = newer;
    if (newer) newer.older = older;
    else newest = older;
    // Whoever still has it holds no others by it.
    place.older = undefined;
    place.newer = undefined;
  }
}

/** The array that others may hold too. */
function listedBy({ call, shows }: Fact): readonly Pet[] | undefined {
  return call.kind === 'list' ? shows(call.listing) : undefined;
}

/** What no other fact shares with it. */
function ownBytes(fact: Fact): number {
  const { call } = fact;
  if (call.kind === 'list') return FACT_BYTES + FOUND_BYTES * (listedBy(fact)?.length ?? 0);
  const pet = fact.animal(call.id);
  return FACT_BYTES + (pet ? animalBytes(pet) : 0);
}
