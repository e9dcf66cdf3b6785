import { isWrite } from '../../support/operation.ts';
import type { CacheControl, Field, Operation } from '../../support/operation.ts';
import { PET, asVariable } from '../../support/pet-documents.ts';
import { FIELDS, FILTERS, LISTS, NEW_PET_FIELD_NAMES, filterOf } from '../../support/pet-api/contract.ts';
import type { NewPet, OperationName } from '../../support/pet-api/contract.ts';
import { between } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';

/** What a client is about to send. */
export interface Sending extends Required<Pick<Operation, 'cacheControl' | 'expected' | 'fields' | 'waitMs'>> {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly headers: Readonly<Record<string, string | null>>;
  /** After how many milliseconds the client aborts; undefined for one that stays. */
  readonly leavesAfterMs?: number | undefined;
}

export interface Names {
  /** Every id that the caller's store ever had. */
  readonly ids: readonly string[];
  /** A name that was not used yet. */
  readonly newName: () => string;
}

/** The waits that petql is started with. */
export const WAITS = { maxWaitMs: 3_000, upstreamTimeoutMs: 1_500 } as const;

const PLAIN = { waitMs: WAITS.maxWaitMs, cacheControl: {}, expected: [], variables: {}, headers: {}, fields: [] };

/** Documents that must be rejected, and with which code. */
const WRONG: readonly (readonly [query: string, code: string])[] = [
  ['{ pets(limit: 101) { id } }', 'BAD_USER_INPUT'],
  ['{ pet(id: "9223372036854775808") { id } }', 'BAD_USER_INPUT'],
  ['{ pets { id ', 'GRAPHQL_PARSE_FAILED'],
  ['{ cats { id } }', 'GRAPHQL_VALIDATION_FAILED'],
  [`{ ${Array.from({ length: 201 }, (_, index) => `a${index}: __typename`).join(' ')} }`, 'LIMIT_EXCEEDED'],
];

/** One operation of the mixed load. */
export function nextOperation(random: Random, names: Names): Sending {
  const [wrong, code = ''] = WRONG[between(random, 0, WRONG.length - 1)] ?? [];
  if (wrong !== undefined && random() < 0.03) return { ...PLAIN, query: wrong, expected: [code] };
  const fields = nextFields(random, names);
  const cacheControl = fields.some(isWrite) ? {} : nextCacheControl(random);
  const waitS = random() < 0.3 ? between(random, 0, WAITS.maxWaitMs / 1_000) : undefined;
  return {
    ...operationOf(fields),
    cacheControl,
    waitMs: waitS === undefined ? WAITS.maxWaitMs : waitS * 1_000,
    leavesAfterMs: random() < 0.03 ? between(random, 1, 300) : undefined,
    headers: {
      prefer: waitS === undefined ? null : `wait=${waitS}`,
      'cache-control': textOf(cacheControl) || null,
    },
  };
}

/** An operation of these fields, `f0` the first, with variables. */
export function operationOf(fields: readonly Field[]): Sending {
  const variables: Record<string, unknown> = {};
  const declared: string[] = [];
  const selections = fields.map((field, position) => {
    const { name = field.kind, selection = PET, args = {} } = partsOf(field);
    const given = Object.entries(args).map(([arg, [value, type]]) => {
      variables[`${arg}${position}`] = value;
      declared.push(`$${arg}${position}: ${type}`);
      return `${arg}: $${arg}${position}`;
    });
    return `f${position}: ${name}${given.length > 0 ? `(${given.join(', ')})` : ''} ${selection}`;
  });
  const type = fields.some(isWrite) ? 'mutation' : 'query';
  const head = declared.length > 0 ? `${type} Soak(${declared.join(', ')})` : type;
  return { ...PLAIN, query: `${head} { ${selections.join(' ')} }`, variables, fields };
}

/** With a key that the upstream rejects; petql may not call with it for a while, and then says the same. */
export function operationOfWrongKey(): Sending {
  const expected = ['UNAUTHENTICATED', 'DOWNSTREAM_SERVICE_ERROR', 'GATEWAY_TIMEOUT', 'RATE_LIMITED'];
  return { ...PLAIN, query: '{ pets { id } }', expected };
}

interface Parts {
  readonly name?: string;
  readonly selection?: string;
  readonly args?: Readonly<Record<string, readonly [value: unknown, type: string]>>;
}

function partsOf(field: Field): Parts {
  switch (field.kind) {
    case 'pet':
      return { args: { id: [field.id, 'ID!'] } };
    case 'petsById':
      return { args: { ids: [field.ids, '[ID!]!'] } };
    case 'pets': {
      const filter = asVariable(filterOf(field.list));
      const filters = FILTERS.map((name) => [name, [filter[name], FIELDS[name].type]] as const);
      return { args: { ...Object.fromEntries(filters), limit: [field.limit, 'Int'] } };
    }
    case 'create': {
      const selection = `{ pet ${PET} userErrors { code message } }`;
      return { name: 'createPet', selection, args: { input: [asVariable(field.pet), 'CreatePetInput!'] } };
    }
    case 'rateLimit':
      return { selection: '{ plan queued windows { window limit used remaining } }' };
  }
}

/** Fields with values that the seed chooses. */
interface Draws {
  readonly list: () => Field;
  readonly pet: () => Field;
  readonly petsById: () => Field;
  readonly create: (isKeyed?: boolean, name?: string) => Field;
}

type Share = readonly [share: number, fieldsOf: (draws: Draws) => Field[]];

/** What the load is mixed of, by the operation that it is about: one that is missing does not compile. The rest are quotas. */
const MIX: Readonly<Record<OperationName, readonly Share[]>> = {
  listPets: [
    [0.3, ({ list }) => [list()]],
    [0.12, ({ list, pet }) => [list(), pet(), list(), pet()]],
  ],
  getPet: [
    [0.2, ({ pet }) => [pet()]],
    [0.12, ({ petsById }) => [petsById()]],
  ],
  createPet: [
    [0.12, ({ create }) => [create()]],
    [0.01, ({ create }) => [create(), create()]],
    [0.01, ({ create }) => [create(false, '')]],
  ],
};
const SHARES = Object.values(MIX).flat();

function nextFields(random: Random, names: Names): Field[] {
  const id = () => nextId(random, names);
  let left = random();
  const [, fieldsOf] = SHARES.find(([share]) => (left -= share) < 0) ?? [];
  if (!fieldsOf) return [{ kind: 'rateLimit' }];
  return fieldsOf({
    list: () => ({ kind: 'pets', list: choose(LISTS, random), limit: random() < 0.3 ? 100 : between(random, 1, 100) }),
    pet: () => ({ kind: 'pet', id: id() }),
    petsById: () => ({ kind: 'petsById', ids: Array.from({ length: between(random, 1, 30) }, id) }),
    create(isKeyed = random() < 0.7, name = names.newName()) {
      return { kind: 'create', pet: { ...nextPet(random, name), idempotencyKey: isKeyed ? `key-${name}` : undefined } };
    },
  });
}

/** A new pet with a value in each field; three of ten enums are left out. */
function nextPet(random: Random, name: string): NewPet {
  const values = NEW_PET_FIELD_NAMES.map((field) => {
    const form = FIELDS[field];
    switch (form.kind) {
      case 'enum':
        return [field, random() < 0.3 ? undefined : choose(form.values, random)];
      case 'int64':
        return [field, String(between(random, 1, 9))];
      case 'text':
        return [field, `text ${between(random, 1, 9)}`];
    }
  });
  return { ...Object.fromEntries(values), name };
}

function choose<Value>(values: readonly Value[], random: Random): Value {
  return values[between(random, 0, values.length - 1)] as Value;
}

/** Mostly of pets that are there: the newest, which their creators look for, the first ones, and any. */
function nextId(random: Random, { ids }: Names): string {
  const chance = random();
  if (chance < 0.05) return String(between(random, 1, 1_000_000));
  const last = ids.length - 1;
  if (chance < 0.25) return ids[between(random, 0, Math.min(20, last))] ?? '1';
  return ids[Math.max(0, last - between(random, 0, chance < 0.6 ? 20 : 300))] ?? '1';
}

function nextCacheControl(random: Random): CacheControl {
  const chance = random();
  const maxAge = between(random, 0, 30);
  const maxStale = between(random, 1, 600);
  if (chance < 0.04) return { noCache: true };
  if (chance < 0.08) return { maxAge };
  if (chance < 0.12) return { maxStale };
  if (chance < 0.14) return { maxAge, maxStale };
  return chance < 0.17 ? { onlyIfCached: true } : {};
}

function textOf({ noCache, maxAge, maxStale, onlyIfCached }: CacheControl): string {
  const directives = [
    noCache && 'no-cache',
    maxAge !== undefined && `max-age=${maxAge}`,
    maxStale !== undefined && `max-stale=${maxStale}`,
    onlyIfCached && 'only-if-cached',
  ];
  return directives.filter(Boolean).join(', ');
}
