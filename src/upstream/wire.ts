import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { int64FromBigInt } from '../int64.ts';
import type { Int64 } from '../int64.ts';
import { TooManyValues, bareNumber, parseLosslessJson } from '../lossless-json.ts';
import { PET_STATUSES } from '../pet.ts';
import type { NewPet, Pet, PetStatus } from '../pet.ts';

/** In a body: a listing has some 500, and what is unknown in it may have as much again many times. */
const MOST_VALUES = 20_000;

/** The largest listing that the upstream gives (pet-api.md, "Page size"). */
export const LISTING_LIMIT = 100;

/** Either what the body says, or what is not as the contract has it. */
export type Decoded<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & Problem);

export interface Problem {
  /** Which field, and what was expected. Never a part of the body itself. */
  readonly problem: string;
  /** Whether the whole of it is nothing that the service answers: somebody else's page, or another kind of value. */
  readonly foreign: boolean;
}

/** The upstream's Error body (pet-api.md, "Error"). */
export interface WireError {
  readonly code: string;
  readonly message: string;
}

export function decodePet(body: Buffer): Decoded<Pet> {
  return decode(petShape, body, plainPet);
}

export function decodePets(body: Buffer): Decoded<Pet[]> {
  return decode(petsShape, body, plainPets);
}

/** The Error body, or undefined where the body is none: a proxy's page, an empty answer. */
export function decodeError(body: Buffer): WireError | undefined {
  const decoded = decode(errorShape, body);
  return decoded.ok ? decoded.value : undefined;
}

/** Whether it is the Error body of a 404, with all that the contract says of one: somebody else's may have a code and a message too. */
export function saysNotFound(body: Buffer): boolean {
  return decode(notFoundShape, body).ok;
}

/** A NewPet with its int64 as a bare number, and no status rather than an empty one. */
export function encodeNewPet({ name, categoryId, status }: NewPet): string {
  return JSON.stringify({ name, categoryId: bareNumber(categoryId), status });
}

const int64 = z.union([z.int(), z.bigint()], 'expected an int64').transform((value, context) => {
  const exact = typeof value === 'number' ? (String(value) as Int64) : int64FromBigInt(value);
  if (exact !== undefined) return exact;
  context.addIssue({ code: 'custom', message: 'expected an int64' });
  return z.NEVER;
});

const petShape = z
  .object({
    id: int64,
    name: z.string('expected a string'),
    categoryId: int64,
    // Absent by the contract; null is how many services write that.
    status: z.enum(PET_STATUSES, `expected one of ${PET_STATUSES.join(', ')}`).nullish(),
  })
  .transform(({ id, name, categoryId, status }): Pet => ({ id, name, categoryId, status: status ?? undefined }));

const uniquePets = z.array(petShape).superRefine((pets, context) => {
  const seen = new Set<string>();
  for (const [index, { id }] of pets.entries()) {
    if (seen.has(id)) context.addIssue({ code: 'custom', path: [index, 'id'], message: 'expected an id of its own' });
    seen.add(id);
  }
});

// Counted before any is looked at: a megabyte holds some 300,000 wrong ones, and to say so of each takes many seconds.
const petsShape = z
  .array(z.unknown(), 'expected an array')
  .max(LISTING_LIMIT, `expected at most ${LISTING_LIMIT} animals`)
  .pipe(uniquePets);

// Cut to a length that is fit for a client's eyes: this text passes through to whoever asked.
const errorShape = z.object({
  code: z.string().transform((code) => code.slice(0, 100)),
  message: z.string().transform((message) => message.slice(0, 1000)),
});

const notFoundShape = errorShape.extend({ status: z.literal(404) });

/**
 * What the shape makes of animals as nearly all of them come, for a fraction of what it makes and drops on the way.
 *
 * @returns undefined where the shape is to be asked, which says what is wrong.
 */
function plainPets(json: unknown): Pet[] | undefined {
  if (!Array.isArray(json) || json.length > LISTING_LIMIT) return undefined;
  const seen = new Set<string>();
  const pets: Pet[] = [];
  for (const item of json) {
    const pet = plainPet(item);
    if (!pet) return undefined;
    pets.push(pet);
    seen.add(pet.id);
  }
  return seen.size === pets.length ? pets : undefined;
}

function plainPet(json: unknown): Pet | undefined {
  if (typeof json !== 'object' || json === null) return undefined;
  const { id, name, categoryId, status } = json as Readonly<Record<string, unknown>>;
  if (!Number.isSafeInteger(id) || !Number.isSafeInteger(categoryId) || typeof name !== 'string') return undefined;
  if (status !== undefined && !PET_STATUSES.includes(status as PetStatus)) return undefined;
  return { id: int64OfSafe(id), name, categoryId: int64OfSafe(categoryId), status: status as PetStatus | undefined };
}

function int64OfSafe(value: unknown): Int64 {
  return String(value) as Int64;
}

function decode<T>(shape: z.ZodType<T>, body: Buffer, plain?: (json: unknown) => T | undefined): Decoded<T> {
  if (!isUtf8(body)) return { ok: false, problem: 'the body: expected UTF-8', foreign: true };
  let json: unknown;
  try {
    json = parseLosslessJson(body.toString('utf8'), MOST_VALUES);
  } catch (error) {
    const expected = error instanceof TooManyValues ? error.message : 'JSON';
    return { ok: false, problem: `the body: expected ${expected}`, foreign: true };
  }
  const value = plain?.(json);
  if (value) return { ok: true, value };
  const parsed = shape.safeParse(json);
  if (parsed.success) return { ok: true, value: parsed.data };
  const [first] = parsed.error.issues;
  if (!first) return { ok: false, problem: 'the body: unexpected shape', foreign: true };
  const foreign = first.path.length === 0 && first.code === 'invalid_type';
  return { ok: false, problem: `${fieldName(first.path)}: ${first.message}`, foreign };
}

/** The path in the body as a reader writes it: `[3].categoryId`. */
function fieldName(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'the body';
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
}
