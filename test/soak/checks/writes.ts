import type { DisturbanceKind, Disturbances } from '../disturbances.ts';
import type { Lateness } from '../lateness.ts';
import { fieldOf } from '../operation.ts';
import type { Operation, WantedPet } from '../operation.ts';
import type { PetStore } from '../pet-store.ts';
import { createTally } from '../tally.ts';
import { AFTERMATH_MS, BUSY_MS } from './answers.ts';
import type { Check } from './check.ts';

export interface WriteRules {
  readonly disturbances: Disturbances;
  readonly lateness: Pick<Lateness, 'during'>;
  storeOf(key: string): PetStore | undefined;
}

/** All submits of one animal, and what came back. */
interface Creation {
  readonly key: string;
  readonly pet: WantedPet;
  readonly firstMs: number;
  lastMs: number;
  /** The ids that came back. */
  readonly created: Set<string>;
  /** Submits of which nobody knows, or said that they know: lost, gone, under way. */
  unheard: number;
  /** When OUTCOME_UNKNOWN came, and from whom. */
  readonly unknowns: { readonly atMs: number; readonly replica: number }[];
  /** Submits that were said to have added nothing. */
  refused: number;
}

/** What makes a call end without a clear answer. */
const BREAKS: readonly DisturbanceKind[] = ['upstream', 'killed', 'stopping', 'frozen'];

/** Nothing is added twice, and what clients were told of their creations is what the store did. */
export function createWriteCheck({ disturbances, lateness, storeOf }: WriteRules): Check {
  const once = createTally('no animal is added twice');
  const stored = createTally('a success is in the store');
  const same = createTally('one key has one outcome');
  const unknown = createTally('an unknown outcome is unknown');
  const refused = createTally('what was refused was not added');
  const creations = new Map<string, Creation>();

  return {
    tallies: [once, stored, same, unknown, refused],
    see(operation) {
      for (const [position, field] of operation.asked.entries()) {
        if (field.kind === 'create') seeSubmit(operation, position, field.pet);
      }
    },
    finish() {
      for (const creation of creations.values()) judge(creation);
    },
  };

  function seeSubmit({ key, replica, outcome, startedMs, endedMs }: Operation, position: number, pet: WantedPet): void {
    const known = creations.get(pet.name) ?? {
      key,
      pet,
      firstMs: startedMs,
      lastMs: endedMs,
      created: new Set<string>(),
      unheard: 0,
      unknowns: [],
      refused: 0,
    };
    creations.set(pet.name, known);
    known.lastMs = Math.max(known.lastMs, endedMs);
    if (outcome.kind !== 'answered') {
      known.unheard += 1;
      return;
    }
    const { value, error } = fieldOf(outcome.answer, position);
    const code = error?.extensions?.code;
    if (value?.pet) known.created.add(value.pet.id);
    else if (code === 'OUTCOME_UNKNOWN') known.unknowns.push({ atMs: endedMs, replica });
    else if (code === 'OUTCOME_PENDING') known.unheard += 1;
    else known.refused += 1;
  }

  function judge({ key, pet, firstMs, lastMs, created, unheard, unknowns, refused: times }: Creation): void {
    const added = storeOf(key)?.addedAs(pet.name) ?? [];
    // What is kept of a key is in Redis, and a Redis that lost it has lost it.
    const emptied = disturbances.touched(['emptied'], { fromMs: firstMs, untilMs: lastMs });
    const who = `${key}: ${pet.name}${pet.idempotencyKey === undefined ? '' : ' (keyed)'}`;
    if (added.length <= 1) once.ok();
    else if (emptied && pet.idempotencyKey !== undefined) once.explain();
    else once.break(`${who}: added ${added.length} times`);

    for (const id of created) {
      if (added.some((one) => one.id === id)) stored.ok();
      else stored.break(`${who}: created as ${id}, which is not in the store`);
    }
    if (created.size === 1) same.ok();
    else if (created.size > 1 && emptied) same.explain();
    else if (created.size > 1) same.break(`${who}: created as ${[...created].join(' and ')}`);

    for (const { atMs, replica } of unknowns) {
      const span = { fromMs: firstMs - AFTERMATH_MS, untilMs: atMs };
      if (disturbances.touched(BREAKS, span)) unknown.ok();
      else if (lateness.during(span, replica) > BUSY_MS) unknown.explain();
      else unknown.break(`${who}: OUTCOME_UNKNOWN at ${Math.round(atMs)} ms, and nothing had gone wrong`);
    }
    if (times === 0 || unheard > 0 || unknowns.length > 0 || created.size > 0) return;
    if (added.length === 0) refused.ok();
    else refused.break(`${who}: refused ${times} times, and added`);
  }
}
