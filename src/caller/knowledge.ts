import type { Int64 } from '../int64.ts';
import type { Pet } from '../pet.ts';
import { LISTINGS } from './call.ts';
import type { ListingName } from './call.ts';
import type { Demand } from './demand.ts';
import { answerFrom } from './fact.ts';
import type { Fact } from './fact.ts';
import { createKnowledgeRoom } from './knowledge-room.ts';
import type { KnowledgeRoom, Place } from './knowledge-room.ts';

/** Single animals remembered at most; the one learnt longest ago goes first. */
const MOST_ANIMALS = 500;

/** Whether one listing shows the whole store; as of the last time that one was seen. */
export type StoreSize = 'large' | 'small' | 'unknown';

export interface Answer {
  readonly pets: readonly Pet[];
  /** By `clock.elapsed()`: what it says was true then or later. */
  readonly asOfMs: number;
}

/** What a caller's calls have found out: at most one listing of each kind, and single animals, as far as there is room. */
export interface Knowledge {
  /** The youngest answer to the demand, however old; undefined where nothing is known. */
  find(demand: Demand): Answer | undefined;
  /** The listings that are known as of this moment or a later one. */
  listed(sinceMs: number): ReadonlySet<ListingName>;
  /** The listing that showed the animal last, writes or not; undefined where none is remembered that did. */
  lastShown(id: Int64): ListingName | undefined;
  learn(fact: Fact): void;
  /** A write may have changed the store: what was known is known no more, but for which listing showed what. */
  outdate(): void;
  /** All of it. */
  forget(): void;
  /** All that is known: listings, and then single animals in the order in which they were learnt. */
  facts(): readonly Fact[];
  size(): StoreSize;
  /** Another object once anything was learnt or forgotten: until then whatever can be answered is answered alike. */
  revision(): object;
  /** Whether part of the store was asked for while its size was not known; asking for the whole may save calls then. */
  askedInParts(): boolean;
}

/** @param room that all callers share. Default: one of its own. */
export function createKnowledge(room: KnowledgeRoom = createKnowledgeRoom()): Knowledge {
  const listings = new Map<ListingName, Place>();
  /** Those that a write came after, each until there is a younger one. */
  const outdated = new Map<ListingName, Place>();
  const animals = new Map<Int64, Place>();
  let size: StoreSize = 'unknown';
  let revision = {};
  let askedInParts = false;

  return {
    find(demand) {
      if (demand.kind === 'listing') {
        return younger(
          younger(undefined, listings.get(demand.listing)?.fact, demand),
          listings.get('all')?.fact,
          demand,
        );
      }
      let youngest = younger(undefined, animals.get(demand.id)?.fact, demand);
      for (const { fact } of listings.values()) youngest = younger(youngest, fact, demand);
      return youngest;
    },
    listed(sinceMs) {
      const young = [...listings].filter(([, { fact }]) => fact.asOfMs >= sinceMs);
      return new Set(young.map(([listing]) => listing));
    },
    learn(fact) {
      revision = {};
      if (fact.call.kind === 'list') learnListing(fact, fact.call.listing);
      else learnAnimal(fact, fact.call.id);
    },
    lastShown(id) {
      let last: Fact | undefined;
      for (const name of LISTINGS) {
        const fact = (listings.get(name) ?? outdated.get(name))?.fact;
        if (fact?.animal(id) && !(last && last.asOfMs >= fact.asOfMs)) last = fact;
      }
      return last?.call.kind === 'list' ? last.call.listing : undefined;
    },
    outdate() {
      revision = {};
      clear(animals);
      for (const [listing, place] of listings) {
        drop(outdated, listing);
        outdated.set(listing, place);
      }
      listings.clear();
    },
    forget() {
      revision = {};
      clear(animals);
      clear(listings);
      clear(outdated);
    },
    facts: () => [...listings.values(), ...animals.values()].map(({ fact }) => fact),
    size: () => size,
    revision: () => revision,
    askedInParts: () => askedInParts,
  };

  function learnListing(fact: Fact, listing: ListingName): void {
    if (listing === 'all') size = fact.complete ? 'small' : 'large';
    else askedInParts ||= size === 'unknown';
    if (!isYounger(fact, listings.get(listing))) return;
    drop(listings, listing);
    drop(outdated, listing);
    listings.set(listing, room.keep(fact, letGo));
  }

  function learnAnimal(fact: Fact, id: Int64): void {
    askedInParts ||= size === 'unknown';
    if (!isYounger(fact, animals.get(id))) return;
    drop(animals, id);
    animals.set(id, room.keep(fact, letGo));
    for (const oldest of animals.keys()) {
      if (animals.size <= MOST_ANIMALS) break;
      drop(animals, oldest);
    }
    // The store has an animal that a listing of all of them did not show: that listing is no proof of anything any more.
    // One that was there before the listing is no surprise.
    const all = listings.get('all')?.fact;
    if (!all || fact.asOfMs < all.asOfMs || !fact.animal(id) || all.animal(id) !== null) return;
    drop(listings, 'all');
    size = 'unknown';
  }

  function drop<Key>(places: Map<Key, Place>, key: Key): void {
    const place = places.get(key);
    if (!place) return;
    places.delete(key);
    room.release(place);
  }

  function clear(places: Map<unknown, Place>): void {
    for (const place of places.values()) room.release(place);
    places.clear();
  }

  /** The room is needed for what was learnt later, for this caller or another one. */
  function letGo(fact: Fact): void {
    revision = {};
    const { call } = fact;
    if (call.kind === 'get') animals.delete(call.id);
    else (listings.get(call.listing)?.fact === fact ? listings : outdated).delete(call.listing);
  }
}

function younger(known: Answer | undefined, fact: Fact | undefined, demand: Demand): Answer | undefined {
  if (!fact || (known && known.asOfMs >= fact.asOfMs)) return known;
  const pets = answerFrom(fact, demand);
  return pets ? { pets, asOfMs: fact.asOfMs } : known;
}

function isYounger(fact: Fact, known: Place | undefined): boolean {
  return !known || fact.asOfMs >= known.fact.asOfMs;
}
