import { LRUCache } from 'lru-cache';
import { bytesFor } from '../../common/memory.ts';
import { petBytes } from '../../pets/pet.ts';
import type { Snapshot } from '../../pets/snapshot.ts';

/** A cache that loses a snapshot by an eviction. */
interface SnapshotOwner {
  recordEviction(snapshot: Snapshot): void;
}

/** A snapshot without its pets and lists, and a list without its pets; measured. */
const SNAPSHOT_BYTES = 680;
const LIST_BYTES = 80;
const NAME_CHARACTER_BYTES = 2;
/** The places of a pet in a map and in a list. */
const MAP_PLACE_BYTES = 80;
const LIST_PLACE_BYTES = 20;

/** Bounds the memory that the snapshots of all callers take together: the least recently used go first. */
export class SnapshotMemory {
  readonly #owners = new LRUCache<Snapshot, SnapshotOwner>({
    maxSize: bytesFor('snapshots'),
    sizeCalculation: (_owner, snapshot) => snapshotBytes(snapshot),
    dispose: (owner, snapshot) => owner.recordEviction(snapshot),
  });

  add(snapshot: Snapshot, owner: SnapshotOwner): void {
    this.#owners.set(snapshot, owner);
  }

  /** Records that the snapshot was used. */
  recordUse(snapshot: Snapshot): void {
    this.#owners.get(snapshot);
  }

  delete(snapshot: Snapshot): void {
    this.#owners.delete(snapshot);
  }
}

/** Returns the memory that a snapshot takes, with pets that no other one has. */
export function snapshotBytes({ key, pets, lists }: Snapshot): number {
  const ofKey = SNAPSHOT_BYTES + NAME_CHARACTER_BYTES * key.length;
  const ofPets = pets.reduce((sum, pet) => sum + petBytes(pet) + MAP_PLACE_BYTES, ofKey);
  return lists.values().reduce((sum, list) => sum + LIST_BYTES + list.length * LIST_PLACE_BYTES, ofPets);
}
