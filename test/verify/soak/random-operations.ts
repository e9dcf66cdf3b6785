import type { CacheControl, Field, Operation, WantedPet } from '../../support/operation.ts';
import { STATUSES } from '../../support/pet-store.ts';
import { between } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';

/** What a client is about to send. */
export type Sending = Required<Pick<Operation, 'cacheControl' | 'expected' | 'fields' | 'waitMs'>> & {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  /** After how many milliseconds the client aborts; undefined for one that stays. */
  readonly leavesAfterMs?: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
};

export interface Names {
  /** Every id that the caller's store ever had. */
  readonly ids: readonly string[];
  /** A name that was not used yet. */
  newName(): string;
}

/** The waits that petql is started with. */
export const WAITS = { maxWaitMs: 3_000, upstreamTimeoutMs: 1_500 } as const;

const PLAIN = { waitMs: WAITS.maxWaitMs, cacheControl: {}, expected: [], variables: {}, headers: {}, fields: [] };

/** One operation of the mixed load. */
export function nextOperation(random: Random, names: Names): Sending {
  if (random() < 0.03) return wrongOperation(random);
  const fields = nextFields(random, names);
  const writes = fields.some(({ kind }) => kind === 'create');
  const waitS = random() < 0.3 ? between(random, 0, WAITS.maxWaitMs / 1_000) : undefined;
  const cacheControl = writes ? {} : nextCacheControl(random);
  const cache = cacheControlText(cacheControl);
  return {
    ...PLAIN,
    ...documentOf(fields, random() < 0.1),
    fields,
    cacheControl,
    waitMs: waitS === undefined ? WAITS.maxWaitMs : waitS * 1_000,
    leavesAfterMs: random() < 0.03 ? between(random, 1, 300) : undefined,
    headers: {
      ...(waitS === undefined ? {} : { prefer: `wait=${waitS}` }),
      ...(cache === '' ? {} : { 'cache-control': cache }),
    },
  };
}

/** The same creation once more, with its idempotency key. */
export function sameCreation(pet: WantedPet): Sending {
  const fields = [{ kind: 'create', pet }] as const;
  return { ...PLAIN, ...documentOf(fields, false), fields };
}

/** With a key that the upstream rejects; petql may not call with it for a while, and then says the same. */
export function strangerOperation(): Sending {
  const expected = ['UNAUTHENTICATED', 'DOWNSTREAM_SERVICE_ERROR', 'GATEWAY_TIMEOUT', 'RATE_LIMITED'];
  return { ...PLAIN, query: '{ pets { id } }', expected };
}

function nextFields(random: Random, names: Names): Field[] {
  const chance = random();
  const list = (): Field => {
    const limit = random() < 0.3 ? 100 : between(random, 1, 100);
    return { kind: 'pets', status: random() < 0.3 ? undefined : STATUSES[between(random, 0, 2)], limit };
  };
  const pet = (): Field => ({ kind: 'pet', id: nextId(random, names) });
  const create = (): Field => ({ kind: 'create', pet: newPet(random, names, random() < 0.7) });
  if (chance < 0.3) return [list()];
  if (chance < 0.5) return [pet()];
  if (chance < 0.62) {
    return [{ kind: 'petsById', ids: Array.from({ length: between(random, 1, 30) }, () => nextId(random, names)) }];
  }
  if (chance < 0.74) return [list(), pet(), list(), pet()];
  if (chance < 0.86) return [create()];
  if (chance < 0.87) return [create(), create()];
  if (chance < 0.88) return [{ kind: 'create', pet: { ...newPet(random, names, false), name: '' } }];
  return [{ kind: 'rateLimit' }];
}

/** Mostly of pets that are there: the youngest, which their creators look for, the first ones, and any. */
function nextId(random: Random, { ids }: Names): string {
  const chance = random();
  if (chance < 0.05) return String(between(random, 1, 1_000_000));
  const last = ids.length - 1;
  if (chance < 0.4) return ids[Math.max(0, last - between(random, 0, 20))] ?? '1';
  if (chance < 0.6) return ids[between(random, 0, Math.min(20, last))] ?? '1';
  return ids[Math.max(0, last - between(random, 0, 300))] ?? '1';
}

function newPet(random: Random, names: Names, isKeyed: boolean): WantedPet {
  const name = names.newName();
  const status = random() < 0.2 ? undefined : STATUSES[between(random, 0, 2)];
  const idempotencyKey = isKeyed ? `key-${name}` : undefined;
  return { name, categoryId: String(between(random, 1, 9)), status, idempotencyKey };
}

function nextCacheControl(random: Random): CacheControl {
  const chance = random();
  if (chance < 0.04) return { noCache: true };
  if (chance < 0.08) return { maxAge: between(random, 0, 30) };
  if (chance < 0.12) return { maxStale: between(random, 1, 600) };
  if (chance < 0.14) return { maxAge: between(random, 0, 30), maxStale: between(random, 1, 600) };
  return chance < 0.17 ? { onlyIfCached: true } : {};
}

function cacheControlText({ noCache, maxAge, maxStale, onlyIfCached }: CacheControl): string {
  return [
    ...(noCache ? ['no-cache'] : []),
    ...(maxAge === undefined ? [] : [`max-age=${maxAge}`]),
    ...(maxStale === undefined ? [] : [`max-stale=${maxStale}`]),
    ...(onlyIfCached ? ['only-if-cached'] : []),
  ].join(', ');
}

/** With variables, as programs send it, or inline, as people do. */
function documentOf(fields: readonly Field[], isInline: boolean): Pick<Sending, 'query' | 'variables'> {
  const variables: Record<string, unknown> = {};
  const declared: string[] = [];
  const value = (given: unknown, type: string) => {
    if (isInline) return JSON.stringify(given);
    const name = `v${declared.length}`;
    declared.push(`$${name}: ${type}`);
    variables[name] = given;
    return `$${name}`;
  };
  const selections = fields.map((field, position) => `f${position}: ${fieldText(field, value)}`).join(' ');
  const type = fields.some(({ kind }) => kind === 'create') ? 'mutation' : 'query';
  const head = declared.length > 0 ? `${type} Soak(${declared.join(', ')})` : type;
  return { query: `${head} { ${selections} }`, variables };
}

const PET = '{ id name categoryId status }';

function fieldText(field: Field, value: (given: unknown, type: string) => string): string {
  switch (field.kind) {
    case 'pet':
      return `pet(id: ${value(field.id, 'ID!')}) ${PET}`;
    case 'petsById':
      return `petsById(ids: ${value(field.ids, '[ID!]!')}) ${PET}`;
    case 'pets': {
      const status = field.status ? `status: ${field.status.toUpperCase()}, ` : '';
      return `pets(${status}limit: ${value(field.limit, 'Int')}) ${PET}`;
    }
    case 'create': {
      const { name, categoryId, status, idempotencyKey } = field.pet;
      const input = [`name: ${value(name, 'String!')}`, `categoryId: ${value(categoryId, 'ID!')}`];
      if (status) input.push(`status: ${status.toUpperCase()}`);
      if (idempotencyKey !== undefined) input.push(`idempotencyKey: ${value(idempotencyKey, 'String')}`);
      return `createPet(input: { ${input.join(', ')} }) { pet ${PET} userErrors { code message } }`;
    }
    case 'rateLimit':
      return 'rateLimit { plan queued windows { window limit used remaining } }';
  }
}

/** A document that must be refused, and with which code. */
function wrongOperation(random: Random): Sending {
  const [query, code] = WRONG[between(random, 0, WRONG.length - 1)] ?? ['', ''];
  return { ...PLAIN, query, expected: [code] };
}

const WRONG: readonly (readonly [query: string, code: string])[] = [
  ['{ pets(limit: 101) { id } }', 'BAD_USER_INPUT'],
  ['{ pet(id: "9223372036854775808") { id } }', 'BAD_USER_INPUT'],
  ['{ pets { id ', 'GRAPHQL_PARSE_FAILED'],
  ['{ cats { id } }', 'GRAPHQL_VALIDATION_FAILED'],
  [`{ ${Array.from({ length: 201 }, (_, index) => `a${index}: __typename`).join(' ')} }`, 'LIMIT_EXCEEDED'],
];
