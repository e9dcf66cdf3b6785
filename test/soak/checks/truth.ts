import type { Disturbances, Span } from '../disturbances.ts';
import { fieldOf } from '../operation.ts';
import type { Lateness } from '../lateness.ts';
import type { Asked, HeardWrite, Operation } from '../operation.ts';
import { textOf } from '../pet-store.ts';
import type { PetStore } from '../pet-store.ts';
import { createTally } from '../tally.ts';
import { AFTERMATH_MS, BUSY_MS, name } from './answers.ts';
import type { Check } from './check.ts';

export interface TruthRules {
  readonly disturbances: Disturbances;
  readonly lateness: Pick<Lateness, 'during'>;
  storeOf(key: string): PetStore | undefined;
  readonly maxStaleMs: number;
  /** How long a call may take. */
  readonly upstreamTimeoutMs: number;
}

/** Ages are whole milliseconds, and between replicas by Redis's clock, which has no finer ones. */
const ROUNDING_MS = 5;
/** From petql's last look at the clock until the client reads its answer, when nobody is stopped meanwhile. */
const DELIVERY_MS = 1_000;

/** What is answered was true at a moment within its stated age, nothing older than asked for, and after one's own writes. */
export function createTruthCheck({
  disturbances,
  lateness,
  storeOf,
  maxStaleMs,
  upstreamTimeoutMs,
}: TruthRules): Check {
  const truth = createTally('data was true within its stated age');
  const ages = createTally('no older than was asked for');
  const ownWrites = createTally('a creation is seen by what follows it');
  const heard = createTally('a creation is seen by the other replicas');
  const apart = createTally('no key sees what is of another');

  return {
    tallies: [truth, ages, ownWrites, heard, apart],
    see(operation) {
      const { outcome, key, asked, startedMs, endedMs, afterWriteMs, heardWrite } = operation;
      const store = storeOf(key);
      if (outcome.kind !== 'answered' || !store) return;
      const { oldestAgeMs: ageMs } = outcome.answer.extensions?.petql ?? {};
      const span = spanOf(operation, ageMs ?? 0);
      for (const [position, field] of asked.entries()) {
        const { value, error } = fieldOf(outcome.answer, position);
        if (error || !isRead(field)) continue;
        const strangers = [value].flat().filter((pet) => pet && !store.has(pet.id));
        if (strangers.length > 0) apart.break(`${name(operation)}: got ${JSON.stringify(strangers[0])}`);
        else apart.ok();
        if (ageMs === undefined) {
          truth.break(`${name(operation)}: data without an age`);
        } else if (!holds(store, field, value, span)) {
          truth.break(`${name(operation)}: ${describe(field, value)} was not true in the ${ageMs} ms that it claims`);
        } else truth.ok();
        const from = (atMs: number) => ({ ...span, fromMs: Math.max(span.fromMs, atMs) });
        const outdated = (atMs: number) =>
          `${name(operation)}: ${describe(field, value)} is from before ${Math.round(atMs)} ms`;
        if (afterWriteMs > -Infinity) {
          if (holds(store, field, value, from(afterWriteMs))) ownWrites.ok();
          else ownWrites.break(outdated(afterWriteMs));
        }
        if (!heardWrite) continue;
        if (holds(store, field, value, from(heardWrite.atMs))) heard.ok();
        else if (mayHaveMissed(operation, heardWrite)) heard.explain();
        else heard.break(outdated(heardWrite.atMs));
      }
      if (ageMs !== undefined) seeAge(operation, ageMs, endedMs - startedMs);
    },
  };

  /** Without Redis each replica knows of its own creations alone, and one that is stopped hears of nothing. */
  function mayHaveMissed({ replica, endedMs }: Operation, { toldMs }: HeardWrite): boolean {
    const span = { fromMs: toldMs - AFTERMATH_MS, untilMs: endedMs };
    return (
      disturbances.touched(['redis', 'emptied', 'stalled'], span) ||
      disturbances.touched(['frozen'], span, replica) ||
      lateness.during(span, replica) > BUSY_MS
    );
  }

  /** In which it was true at some moment, if the age is right. */
  function spanOf({ startedMs, endedMs, replica }: Operation, ageMs: number): Span {
    const during = { fromMs: startedMs, untilMs: endedMs };
    const deliveredMs = disturbances.touched(['frozen'], during, replica) ? endedMs - startedMs : DELIVERY_MS;
    const answeredMs = Math.max(startedMs, endedMs - deliveredMs);
    return { fromMs: answeredMs - ageMs - ROUNDING_MS, untilMs: endedMs };
  }

  function seeAge(operation: Operation, ageMs: number, tookMs: number): void {
    const { noCache, maxAge, maxStale } = operation.cacheControl;
    const freshMs = (maxAge ?? 1) * 1_000;
    let mostMs = maxAge === undefined ? maxStaleMs : freshMs;
    if (maxStale !== undefined) mostMs = freshMs + maxStale * 1_000;
    // Nothing that was sent before; its age then is less than the operation took.
    if (noCache) mostMs = 0;
    // A call that is under way is waited for, and its answer is as old as the call is long.
    const allowedMs = mostMs + (noCache ? tookMs : Math.max(tookMs, upstreamTimeoutMs)) + ROUNDING_MS;
    if (ageMs <= allowedMs) ages.ok();
    else ages.break(`${name(operation)}: ${ageMs} ms old, at most ${Math.round(allowedMs)} expected`);
  }
}

function isRead({ kind }: Asked): boolean {
  return kind === 'pet' || kind === 'pets' || kind === 'petsById';
}

function holds(store: PetStore, field: Asked, value: any, span: Span): boolean {
  switch (field.kind) {
    case 'pet':
      return store.wasAt(field.id, textOrNull(value), span);
    case 'petsById':
      return (
        value?.length === field.ids.length && field.ids.every((id, at) => store.wasAt(id, textOrNull(value[at]), span))
      );
    case 'pets':
      return Array.isArray(value) && store.listedAt(field.status, field.limit, value.map(textOrNull) as string[], span);
    default:
      return true;
  }
}

function textOrNull(pet: any): string | null {
  return pet ? textOf({ ...pet, status: pet.status?.toLowerCase() ?? undefined }) : null;
}

function describe(field: Asked, value: any): string {
  const what = field.kind === 'pets' ? `pets ${field.status ?? ''} ${field.limit}` : field.kind;
  return `${what} ${JSON.stringify(value)?.slice(0, 200)}`;
}
