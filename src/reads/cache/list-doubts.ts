import type { Int64 } from '../../pets/int64.ts';
import type { ListDoubt } from '../../pets/snapshot.ts';
import { EVIDENCE_MS, MAX_LIST_DOUBT_MS } from '../../common/call-times.ts';

/** A pet that complete lists lack, though other calls had shown it before each of them was sent. */
interface LackingPet {
  /** So many lists, with a call between them that showed the pet again. */
  readonly lists: number;
  readonly lackedAtMs: number;
}

/** What lists have begun to leave unproven. */
export interface NewDoubt {
  /** How many pets they lacked, again and again. */
  readonly pets: number;
  readonly forMs: number;
}

/** One such list may come from a copy that lags, or the pet may be gone. */
const LISTS_TO_DOUBT = 2;
/** One pet may be hidden alone, such as a draft. */
const PETS_TO_DOUBT_LISTS = 2;

const NO_LACKING_PETS: ReadonlyMap<Int64, LackingPet> = new Map();

/**
 * How far the complete lists of one caller are believed: the upstream may cut pages without a word, or hide pets. All times are by
 * `clock.elapsed()`.
 */
export class ListDoubts {
  #pets: ReadonlyMap<Int64, LackingPet> = NO_LACKING_PETS;
  #doubt: ListDoubt = 'none';
  #lastsMs = 0;
  #endsAtMs = -Infinity;

  /** Returns what is in doubt of a list that was sent at this moment. */
  at(sentAtMs: number): ListDoubt {
    return sentAtMs < this.#endsAtMs ? this.#doubt : 'none';
  }

  /**
   * Records a complete list of all pets. Returns what is in doubt from now on; undefined where nothing changes.
   *
   * @param lacking the pets that it lacks though other calls had shown them, and when they did so last.
   */
  record(sentAtMs: number, lacking: ReadonlyMap<Int64, number>): NewDoubt | undefined {
    this.#pets =
      lacking.size === 0
        ? NO_LACKING_PETS
        : new Map([...lacking].map(([id, shownAtMs]) => [id, this.#lackOnce(id, shownAtMs, sentAtMs)]));
    const pets = this.#pets
      .values()
      .filter(({ lists }) => lists >= LISTS_TO_DOUBT)
      .toArray().length;
    if (pets === 0) return undefined;

    const doubt = pets < PETS_TO_DOUBT_LISTS ? 'absences' : 'lists';
    const current = this.at(sentAtMs);
    if (current === doubt || current === 'lists') return undefined;

    const isAgain = current === 'none' && sentAtMs - this.#endsAtMs <= this.#lastsMs;
    this.#lastsMs = isAgain ? Math.min(2 * this.#lastsMs, MAX_LIST_DOUBT_MS) : EVIDENCE_MS;
    this.#endsAtMs = sentAtMs + this.#lastsMs;
    this.#doubt = doubt;
    return { pets, forMs: this.#lastsMs };
  }

  #lackOnce(id: Int64, shownAtMs: number, sentAtMs: number): LackingPet {
    const before = this.#pets.get(id);
    if (!before) return { lists: 1, lackedAtMs: sentAtMs };
    return shownAtMs > before.lackedAtMs ? { lists: before.lists + 1, lackedAtMs: sentAtMs } : before;
  }
}
