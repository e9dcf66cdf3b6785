import type { FaultKind, Faults, Lateness } from './faults.ts';
import { fieldOf, isWrite } from './operation.ts';
import type { Operation, WantedPet } from './operation.ts';
import type { PetStore } from './pet-api/pet-store.ts';
import { Tally } from './tally.ts';
import { AFTERMATH_MS, BUSY_MS } from './check-answers.ts';
import type { Check } from './check-answers.ts';
import { addedProblem, outcomeProblem, storedProblem } from './write-rules.ts';

export interface WriteRules {
  readonly storeOf: (key: string) => PetStore | undefined;
  /** Default: an unknown outcome needs no cause. */
  readonly faults?: Faults | undefined;
  readonly lateness?: Lateness;
}

/** All submits of one pet, and their outcomes. */
interface Creation {
  readonly key: string;
  readonly pet: WantedPet;
  readonly firstMs: number;
  lastMs: number;
  /** The ids that came back. */
  readonly created: Set<string>;
  /** Submits without a clear response: lost, aborted, pending. */
  unheard: number;
  /** When OUTCOME_UNKNOWN came, and from which replica. */
  readonly unknowns: { readonly atMs: number; readonly replica: number }[];
  /** Submits whose response was that nothing was added. */
  refused: number;
}

/** What makes a call end without a clear response. */
const BREAKS: readonly FaultKind[] = ['upstream', 'killed', 'stopping', 'frozen'];

/** No pet is added twice, and the outcomes that clients got are what the store did. */
export function createWriteCheck({ storeOf, faults, lateness }: WriteRules): Check {
  const once = new Tally('no pet is added twice');
  const stored = new Tally('a success is in the store');
  const same = new Tally('one key has one outcome');
  const unknown = new Tally('an unknown outcome is unknown');
  const refused = new Tally('what was refused was not added');
  const wanted = new Tally('what was added was wanted');
  const creations = new Map<string, Creation>();

  return {
    rows: [once, stored, same, unknown, refused, wanted],
    see(operation) {
      for (const [position, field] of operation.fields.entries()) {
        if (!isWrite(field)) continue;
        switch (field.kind) {
          case 'create':
            seeSubmit(operation, position, field.pet);
            break;
          // A write that is none of these does not compile.
          default:
            field satisfies never;
        }
      }
    },
    finish() {
      for (const creation of creations.values()) judge(creation);
      const stores = new Set([...creations.values()].map(({ key }) => storeOf(key)));
      const names = [...stores].flatMap((store) => [...(store?.addedNames() ?? [])]);
      for (const name of names)
        wanted.look(creations.has(name) ? undefined : `${name}: added, and no client wanted it`);
    },
  };

  function seeSubmit(operation: Operation, position: number, pet: WantedPet): void {
    const { key, replica = 0, outcome, startedMs, endedMs } = operation;
    const empty = { firstMs: startedMs, lastMs: endedMs, created: new Set<string>(), unheard: 0, refused: 0 };
    const known = creations.get(pet.name) ?? { key, pet, ...empty, unknowns: [] };
    creations.set(pet.name, known);
    known.lastMs = Math.max(known.lastMs, endedMs);
    if (outcome.kind !== 'answered') {
      known.unheard += 1;
      return;
    }
    const { value, error } = fieldOf(outcome.answer, position);
    const code = error?.extensions.code;
    if (value?.pet) known.created.add(value.pet.id);
    else if (code === 'OUTCOME_UNKNOWN') known.unknowns.push({ atMs: endedMs, replica });
    else if (code === 'OUTCOME_PENDING') known.unheard += 1;
    else known.refused += 1;
  }

  function judge({ key, pet, firstMs, lastMs, created, unheard, unknowns, refused: times }: Creation): void {
    const added = storeOf(key)?.addedAs(pet.name) ?? [];
    // What petql keeps for a key is in Redis, and a Redis that was emptied has lost it.
    const lost = faults?.touching(['emptied'], { fromMs: firstMs, untilMs: lastMs }) ?? [];
    const isKeyed = pet.idempotencyKey !== undefined;
    const who = `${key}: ${pet.name}${isKeyed ? ' (keyed)' : ''}`;
    const told = (problem: string | undefined) => problem && `${who}: ${problem}`;
    once.look(told(addedProblem(added.length)), lost.length > 0 && isKeyed);
    for (const id of created) stored.look(told(storedProblem(id, added)));
    if (created.size > 0) same.look(told(outcomeProblem(created)), lost.length > 0);
    for (const { atMs, replica } of unknowns) {
      const span = { fromMs: firstMs - AFTERMATH_MS, untilMs: atMs };
      const hasCause = !faults || faults.touching(BREAKS, span).length > 0;
      const isBusy = (lateness?.during(span, replica) ?? 0) > BUSY_MS;
      unknown.look(hasCause ? undefined : `${who}: OUTCOME_UNKNOWN at ${Math.round(atMs)} ms without a fault`, isBusy);
    }
    if (times === 0 || unheard > 0 || unknowns.length > 0 || created.size > 0) return;
    refused.look(added.length > 0 ? `${who}: refused ${times} times, and added` : undefined);
  }
}
