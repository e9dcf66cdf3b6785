import { createRequire } from 'node:module';
import type Highs from 'highs';
import { LISTS, isWithin } from '../../support/pet-api/contract.ts';
import { isShownBy, isWhole } from './trace.ts';
import type { Trace, Wanted } from './trace.ts';

/** Its types are those of its CommonJS build. */
const { default: loadHighs }: { default: (typeof Highs)['default'] } = createRequire(import.meta.url)('highs');

/** A read, and the earliest moment of a call that answers it with data of its age. */
interface Read {
  readonly wanted: Wanted;
  readonly fromMs: number;
  readonly atMs: number;
}

/** A call that could be sent, and the reads that it would answer. */
interface Candidate {
  readonly reads: readonly number[];
}

/** Loaded once. */
let highs: ReturnType<typeof loadHighs> | undefined;

/**
 * The fewest calls with which somebody who knows the future answers every read of a trace, in the moment in which it comes,
 * with data that is at most `maxAgeMs` old and not from before a create that was over: an integer program, exact.
 *
 * A read needs one call of its own kind, or of a list that shows it. A call is sent as its first read comes: any earlier one
 * answers no more.
 *
 * @param createdAtMs when each create was over.
 */
export async function fewestCalls(trace: Trace, createdAtMs: readonly number[], maxAgeMs: number): Promise<number> {
  const reads = readsOf(trace, createdAtMs, maxAgeMs);
  const candidates = candidatesOf(trace, reads);
  const rows = reads.map((): number[] => []);
  for (const [column, { reads: answered }] of candidates.entries()) for (const row of answered) rows[row]?.push(column);

  const solver = await (highs ??= loadHighs());
  const problem = [
    'Minimize',
    sumOf(candidates.map((_, column) => column)),
    'Subject To',
    ...rows.map((columns) => `${sumOf(columns)} >= 1`),
    'Binary',
    ...candidates.map((_, column) => `x${column}`),
    'End',
  ].join('\n');
  // Sums of calls are whole, so a gap below one is none.
  const { Status, ObjectiveValue } = solver.solve(problem, { output_flag: false, mip_rel_gap: 0, mip_abs_gap: 0.99 });
  if (Status !== 'Optimal') throw new Error(`the integer program is ${Status}`);
  return Math.round(ObjectiveValue);
}

/** Equal reads of one moment are one. */
function readsOf({ operations }: Trace, createdAtMs: readonly number[], maxAgeMs: number): Read[] {
  const reads = new Map<string, Read>();
  for (const { atMs, reads: all } of operations) {
    const createdMs = createdAtMs.findLast((endMs) => endMs <= atMs) ?? -Infinity;
    const fromMs = Math.max(atMs - maxAgeMs, createdMs);
    for (const wanted of all) reads.set(`${wanted} ${atMs}`, { wanted, fromMs, atMs });
  }
  return [...reads.values()];
}

function candidatesOf(trace: Trace, reads: readonly Read[]): Candidate[] {
  const ids = new Set(reads.map(({ wanted }) => wanted).filter((wanted) => typeof wanted === 'number'));
  return [...LISTS, ...ids].flatMap((kind) => callsOf(kind, trace, reads));
}

/** The calls of one kind that could be of use. One that no read needs in its moment can be sent later, so it is left out. */
function callsOf(kind: Wanted, trace: Trace, reads: readonly Read[]): Candidate[] {
  const stores = [trace.pets, trace.pets + trace.createsAtMs.length];
  const able = [...reads.entries()].filter(([, { wanted }]) => stores.some((pets) => answers(kind, wanted, pets)));
  const moments = new Set(able.map(([, { atMs }]) => atMs));
  return [...moments].flatMap((sentAtMs) => {
    const pets = trace.pets + trace.createsAtMs.filter((atMs) => atMs <= sentAtMs).length;
    const answered = able.filter(
      ([, { wanted, fromMs, atMs }]) => fromMs <= sentAtMs && sentAtMs <= atMs && answers(kind, wanted, pets),
    );
    const isOfUse = answered.some(([, { atMs }]) => atMs === sentAtMs);
    return isOfUse ? [{ reads: answered.map(([row]) => row) }] : [];
  });
}

/** Whether a call that is sent while the store has so many pets answers a read. */
function answers(kind: Wanted, wanted: Wanted, pets: number): boolean {
  if (kind === wanted) return true;
  if (typeof kind === 'number') return false;
  if (typeof wanted === 'number') return isShownBy(kind, wanted, pets) || (kind === 'all' && isWhole(kind, pets));
  return isWhole(kind, pets) && isWithin(wanted, kind);
}

/** Lines stay short, as the format wants. */
function sumOf(columns: readonly number[]): string {
  return columns.map((column, index) => `${index % 20 === 19 ? '\n' : ''}x${column}`).join(' + ');
}
