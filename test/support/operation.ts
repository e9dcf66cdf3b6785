import { OPERATIONS } from './pet-api/contract.ts';
import type { ListName, NewPet, OperationName, WriteName } from './pet-api/contract.ts';

/** One operation as its client saw it, by the clock of the check. */
export interface Operation {
  readonly key: string;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly fields: readonly Field[];
  readonly outcome: Outcome;
  /** Default 0. */
  readonly replica?: number;
  /** Which process of this replica: 0 is the first, then it was restarted. Default 0. */
  readonly life?: number;
  /** How long it may wait for the quota. Default: not judged. */
  readonly waitMs?: number;
  readonly cacheControl?: CacheControl;
  /** When the last pet was created whose response this process had sent to a client of the key before. Default: never. */
  readonly afterWriteMs?: number;
  /** The last create with this key whose response was sent so long before that all replicas have heard of it. */
  readonly heardWrite?: HeardWrite | undefined;
  /** Codes that this operation is made to get. Default: none, it is sound. */
  readonly expected?: readonly string[];
}

export interface HeardWrite {
  readonly createdMs: number;
  readonly answeredMs: number;
}

/** Seconds, as the header has them. */
export interface CacheControl {
  readonly maxAge?: number;
  readonly maxStale?: number;
  readonly noCache?: boolean;
  readonly onlyIfCached?: boolean;
}

/** The root fields that lead to a call, by its operation. */
interface FieldsOf {
  readonly createPet: { readonly kind: 'create'; readonly pet: WantedPet };
  readonly getPet:
    | { readonly kind: 'pet'; readonly id: string }
    | { readonly kind: 'petsById'; readonly ids: readonly string[] };
  readonly listPets: { readonly kind: 'pets'; readonly list: ListName; readonly limit: number };
}

/** A root field of the operation. It does not compile while an operation of the pet API has none. */
export type Field = FieldsOf[OperationName] | { readonly kind: 'rateLimit' };

/** The operation of the pet API that a root field leads to: a kind that is missing here does not compile. */
const OPERATION_OF: Readonly<Record<Field['kind'], OperationName | undefined>> = {
  create: 'createPet',
  pet: 'getPet',
  petsById: 'getPet',
  pets: 'listPets',
  rateLimit: undefined,
};

export type WriteField = FieldsOf[WriteName];

/** Whether a field changes the store: then it is one of a mutation, and no age is judged. */
export function isWrite(field: Field): field is WriteField {
  const operation = OPERATION_OF[field.kind];
  return operation !== undefined && OPERATIONS[operation].isWrite;
}

/** A pet to create. No other pet has its name. */
export interface WantedPet extends NewPet {
  readonly idempotencyKey?: string | undefined;
}

export type Outcome =
  | { readonly kind: 'answered'; readonly httpStatus: number; readonly answer: Answer }
  /** The connection broke, or what came was no GraphQL. */
  | { readonly kind: 'lost'; readonly reason: string }
  /** The client aborted it. */
  | { readonly kind: 'left' }
  /** No response came. */
  | { readonly kind: 'hung' };

export interface Answer {
  /** Fields by their aliases: `f0` is the first. */
  readonly data?: any;
  readonly errors?: readonly AnswerError[];
  readonly extensions?: any;
}

export interface AnswerError {
  readonly message: string;
  readonly path?: readonly (number | string)[];
  readonly extensions: { code: string; retryAfterMs?: number; retryAt?: string; window?: string };
}

/** What became of the field at this position. */
export function fieldOf({ data, errors = [] }: Answer, position: number): { value: any; error?: AnswerError } {
  const alias = `f${position}`;
  const error = errors.find(({ path }) => !path || path[0] === alias);
  return { value: data?.[alias], ...(error ? { error } : {}) };
}

/** Whether a write has happened, by the value of its field. A write that is missing here does not compile. */
const HAS_WRITTEN: Readonly<Record<WriteField['kind'], (value: any) => boolean>> = {
  create: (value) => Boolean(value?.pet),
};

export function hasWritten({ outcome }: Pick<Operation, 'outcome'>, { kind }: WriteField, position: number): boolean {
  return outcome.kind === 'answered' && HAS_WRITTEN[kind](fieldOf(outcome.answer, position).value);
}

/** `created`, an error's code, or what became of the operation. */
export function outcomeOf({ outcome }: Pick<Operation, 'outcome'>, position = 0): string {
  if (outcome.kind !== 'answered') return outcome.kind;
  const { value, error } = fieldOf(outcome.answer, position);
  if (value?.pet) return 'created';
  return error?.extensions.code ?? 'nothing';
}
