import { AFTERMATH_MS, BUSY_MS, nameOf } from './check-answers.ts';
import type { Check } from './check-answers.ts';
import { NEVER_LATE, createFaults } from './faults.ts';
import type { Faults, Lateness } from './faults.ts';
import { fieldOf, isWrite } from './operation.ts';
import type { Field, HeardWrite, Operation } from './operation.ts';
import { asPet } from './pet-documents.ts';
import { textOf } from './pet-api/pet-store.ts';
import type { PetStore, Span } from './pet-api/pet-store.ts';
import { Tally } from './tally.ts';

export interface ReadRules {
  readonly faults?: Faults;
  readonly lateness?: Lateness;
  readonly storeOf: (key: string) => PetStore | undefined;
  readonly maxStaleMs: number;
  /** How long a call may take. */
  readonly upstreamTimeoutMs: number;
}

/** Ages are whole milliseconds, and between replicas by Redis's clock, which has no finer ones. */
const ROUNDING_MS = 5;
/** From petql's last look at the clock until the client reads its response, where no process is frozen meanwhile. */
const DELIVERY_MS = 1_000;

/** Data was true at a moment within its stated age, no older than the client accepts, and from after its own writes. */
export function createReadCheck(rules: ReadRules): Check {
  const { faults = createFaults(), lateness = NEVER_LATE, storeOf, maxStaleMs, upstreamTimeoutMs } = rules;
  const truth = new Tally('data was true within its stated age');
  const ages = new Tally('no older than was asked for');
  const ownWrites = new Tally('a create is seen by what follows it');
  const heard = new Tally('a create is seen by the other replicas');
  const apart = new Tally('no key sees data of another');

  return {
    rows: [truth, ages, ownWrites, heard, apart],
    see(operation) {
      const { outcome, key, fields } = operation;
      const store = storeOf(key);
      if (outcome.kind !== 'answered' || !store) return;
      for (const [position, field] of fields.entries()) {
        const { value, error } = fieldOf(outcome.answer, position);
        if (!error && !isWrite(field) && field.kind !== 'rateLimit') seeRead(operation, store, field, value);
      }
      seeAge(operation);
    },
  };

  function seeRead(operation: Operation, store: PetStore, field: Field, value: any): void {
    const { afterWriteMs = -Infinity, heardWrite } = operation;
    const foreign = [value].flat().find((pet) => pet && !store.has(pet.id));
    apart.look(foreign && `${nameOf(operation)}: got ${JSON.stringify(foreign)}`);
    const ageMs = ageOf(operation);
    const span = spanOf(operation, ageMs ?? 0);
    const text = `${nameOf(operation)}: ${describe(field, value)}`;
    if (ageMs === undefined) truth.look(`${nameOf(operation)}: data without an age`);
    else truth.look(holds(store, field, value, span) ? undefined : `${text} was not true in the ${ageMs} ms it claims`);
    const outdated = (atMs: number) => {
      const isSeen = holds(store, field, value, { ...span, fromMs: Math.max(span.fromMs, atMs) });
      return isSeen ? undefined : `${text} is from before ${Math.round(atMs)} ms`;
    };
    if (afterWriteMs > -Infinity) ownWrites.look(outdated(afterWriteMs));
    if (heardWrite) heard.look(outdated(heardWrite.createdMs), mayHaveMissed(operation, heardWrite));
  }

  /** Without Redis each replica knows its own creates alone, and one that is frozen hears of nothing. */
  function mayHaveMissed({ replica, endedMs }: Operation, { answeredMs }: HeardWrite): boolean {
    const span = { fromMs: answeredMs - AFTERMATH_MS, untilMs: endedMs };
    return (
      faults.touching(['redis', 'emptied', 'stalled'], span).length > 0 ||
      faults.touching(['frozen'], span, replica).length > 0 ||
      lateness.during(span, replica) > BUSY_MS
    );
  }

  /** In which it was true at some moment, if the age is right. */
  function spanOf({ startedMs, endedMs, replica }: Operation, ageMs: number): Span {
    const frozen = faults.touching(['frozen'], { fromMs: startedMs, untilMs: endedMs }, replica);
    const deliveredMs = frozen.length > 0 ? endedMs - startedMs : DELIVERY_MS;
    const answeredMs = Math.max(startedMs, endedMs - deliveredMs);
    return { fromMs: answeredMs - ageMs - ROUNDING_MS, untilMs: endedMs };
  }

  function seeAge(operation: Operation): void {
    const ageMs = ageOf(operation);
    if (ageMs === undefined) return;
    const { noCache, maxAge, maxStale } = operation.cacheControl ?? {};
    const tookMs = operation.endedMs - operation.startedMs;
    const freshMs = (maxAge ?? 1) * 1_000;
    let maxMs = maxAge === undefined ? maxStaleMs : freshMs;
    if (maxStale !== undefined) maxMs = freshMs + maxStale * 1_000;
    // Nothing that was sent before; its age then is less than the operation took.
    if (noCache) maxMs = 0;
    // A read coalesces with a call in flight, and its data is as old as the call is long.
    const allowedMs = maxMs + (noCache ? tookMs : Math.max(tookMs, upstreamTimeoutMs)) + ROUNDING_MS;
    const problem = `${nameOf(operation)}: ${ageMs} ms old, at most ${Math.round(allowedMs)} expected`;
    ages.look(ageMs <= allowedMs ? undefined : problem);
  }
}

function ageOf({ outcome }: Operation): number | undefined {
  return outcome.kind === 'answered' ? outcome.answer.extensions?.petql?.oldestAgeMs : undefined;
}

function holds(store: PetStore, field: Field, value: any, span: Span): boolean {
  switch (field.kind) {
    case 'pet':
      return store.wasAt(field.id, textOrNull(value), span);
    case 'petsById':
      return (
        value?.length === field.ids.length && field.ids.every((id, at) => store.wasAt(id, textOrNull(value[at]), span))
      );
    case 'pets':
      return Array.isArray(value) && store.listedAt(field.list, field.limit, value.map(textOrNull) as string[], span);
    case 'create':
    case 'rateLimit':
      return true;
  }
}

function textOrNull(pet: any): string | null {
  return pet ? textOf(asPet(pet)) : null;
}

function describe(field: Field, value: any): string {
  const what = field.kind === 'pets' ? `pets ${field.list} ${field.limit}` : field.kind;
  return `${what} ${JSON.stringify(value)?.slice(0, 200)}`;
}
