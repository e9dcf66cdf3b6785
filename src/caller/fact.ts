import type { Int64 } from '../int64.ts';
import type { Pet } from '../pet.ts';
import type { Call, ListingName } from './call.ts';
import type { Demand } from './demand.ts';

/** What one upstream call has found out: the part of the store that it shows, as of one moment. */
export interface Fact {
  readonly call: Call;
  /** When the call was sent, by `clock.elapsed()`: what it found was true then or later. */
  readonly asOfMs: number;
  /** Whether the call shows all that there is of what it asked for. */
  readonly complete: boolean;
  /** The animals with this status, or all of them, as far as the upstream shows them; undefined where this tells not. */
  shows(listing: ListingName): readonly Pet[] | undefined;
  /** The animal, null where it is proved that there is none, undefined where this says nothing of it. */
  animal(id: Int64): Pet | null | undefined;
}

/**
 * The animals that satisfy a demand, one or none for a demand for one animal; undefined where the fact does not tell.
 * This is all that may ever be concluded from a call.
 */
export function answerFrom(fact: Fact, demand: Demand): readonly Pet[] | undefined {
  if (demand.kind === 'listing') return fact.shows(demand.listing);
  const pet = fact.animal(demand.id);
  return pet === undefined ? undefined : pet === null ? NOBODY : [pet];
}

const NOBODY: readonly Pet[] = [];

/** What `GET /pets/{petId}`, or a `POST`, has found out: the animal, or null where there is none. */
export function animalFact(id: Int64, pet: Pet | null, asOfMs: number): Fact {
  return {
    call: { kind: 'get', id },
    asOfMs,
    complete: true,
    shows: () => undefined,
    animal: (asked) => (asked === id ? pet : undefined),
  };
}

/**
 * What `GET /pets` has found out. An animal need not have a status, so only a complete listing of all animals shows every
 * filter and proves that an animal does not exist.
 *
 * @param complete whether the upstream left none out: fewer animals than it can show, and no next page.
 */
export function listingFact(listing: ListingName, pets: readonly Pet[], complete: boolean, asOfMs: number): Fact {
  const whole = listing === 'all' && complete;
  const filtered = new Map<ListingName, readonly Pet[]>([[listing, pets]]);
  let byId: ReadonlyMap<Int64, Pet> | undefined;
  return {
    call: { kind: 'list', listing },
    asOfMs,
    complete,
    shows(asked) {
      const known = filtered.get(asked);
      if (known || !whole) return known;
      const matching = pets.filter(({ status }) => status === asked);
      filtered.set(asked, matching);
      return matching;
    },
    animal(id) {
      byId ??= new Map(pets.map((pet) => [pet.id, pet]));
      return byId.get(id) ?? (whole ? null : undefined);
    },
  };
}
