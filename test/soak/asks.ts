import { between } from '../prove/random.ts';
import type { Random } from '../prove/random.ts';
import type { Asked, CacheControl, Operation, Status, WantedPet } from './operation.ts';

/** What a client is about to send. */
export type Ask = Pick<Operation, 'asked' | 'cacheControl' | 'meant' | 'waitMs'> & {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  /** After how many milliseconds the client goes away; undefined for one that stays. */
  readonly leavesAfterMs: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
};

export interface AskSource {
  /** Every id that the caller's store ever had. */
  readonly ids: readonly string[];
  /** A name that nobody has used. */
  newName(): string;
}

const MAX_WAIT_MS = 3_000;
const STATUSES: readonly Status[] = ['available', 'pending', 'sold'];

/** The waits that petql is started with. */
export const WAITS = { maxWaitMs: MAX_WAIT_MS, upstreamTimeoutMs: 1_500 } as const;

/** One operation of the mixed load. */
export function nextAsk(random: Random, source: AskSource): Ask {
  const meantToFail = random() < 0.03;
  if (meantToFail) return wrongAsk(random);
  const asked = nextFields(random, source);
  const writes = asked.some(({ kind }) => kind === 'create');
  const waitS = random() < 0.3 ? between(random, 0, MAX_WAIT_MS / 1_000) : undefined;
  return {
    ...documentOf(asked, random() < 0.1),
    asked,
    meant: [],
    waitMs: waitS === undefined ? MAX_WAIT_MS : waitS * 1_000,
    cacheControl: writes ? {} : nextCacheControl(random),
    leavesAfterMs: random() < 0.03 ? between(random, 1, 300) : undefined,
    headers: waitS === undefined ? {} : { prefer: `wait=${waitS}` },
  };
}

/** The same creation once more, with its key. */
export function sameCreation(pet: WantedPet): Ask {
  const asked = [{ kind: 'create', pet }] as const;
  const usual = { waitMs: MAX_WAIT_MS, cacheControl: {}, meant: [], leavesAfterMs: undefined, headers: {} };
  return { ...documentOf(asked, false), asked, ...usual };
}

function nextFields(random: Random, source: AskSource): Asked[] {
  const chance = random();
  if (chance < 0.3) return [nextListing(random)];
  if (chance < 0.5) return [nextPet(random, source)];
  if (chance < 0.62) return [nextPets(random, source)];
  if (chance < 0.74)
    return [nextListing(random), nextPet(random, source), nextListing(random), nextPet(random, source)];
  if (chance < 0.86) return [nextCreation(random, source)];
  if (chance < 0.87) return [nextCreation(random, source), nextCreation(random, source)];
  if (chance < 0.88) return [{ kind: 'create', pet: { ...newPet(random, source, false), name: '' } }];
  return [{ kind: 'free' }];
}

function nextListing(random: Random): Asked {
  const limit = random() < 0.3 ? 100 : between(random, 1, 100);
  return { kind: 'pets', status: random() < 0.3 ? undefined : STATUSES[between(random, 0, 2)], limit };
}

function nextPet(random: Random, source: AskSource): Asked {
  return { kind: 'pet', id: nextId(random, source) };
}

function nextPets(random: Random, source: AskSource): Asked {
  return { kind: 'petsById', ids: Array.from({ length: between(random, 1, 30) }, () => nextId(random, source)) };
}

/** Mostly of the animals that are there: the youngest, whom their makers look for, the first ones, and any. */
function nextId(random: Random, { ids }: AskSource): string {
  const chance = random();
  if (chance < 0.05) return String(between(random, 1, 1_000_000));
  const last = ids.length - 1;
  if (chance < 0.4) return ids[Math.max(0, last - between(random, 0, 20))] ?? '1';
  if (chance < 0.6) return ids[between(random, 0, Math.min(20, last))] ?? '1';
  return ids[Math.max(0, last - between(random, 0, 300))] ?? '1';
}

function nextCreation(random: Random, source: AskSource): Asked {
  return { kind: 'create', pet: newPet(random, source, random() < 0.7) };
}

function newPet(random: Random, source: AskSource, keyed: boolean): WantedPet {
  const name = source.newName();
  const status = random() < 0.2 ? undefined : STATUSES[between(random, 0, 2)];
  return { name, categoryId: String(between(random, 1, 9)), status, idempotencyKey: keyed ? `key-${name}` : undefined };
}

function nextCacheControl(random: Random): CacheControl {
  const chance = random();
  if (chance < 0.04) return { noCache: true };
  if (chance < 0.08) return { maxAge: between(random, 0, 30) };
  if (chance < 0.12) return { maxStale: between(random, 1, 600) };
  if (chance < 0.14) return { maxAge: between(random, 0, 30), maxStale: between(random, 1, 600) };
  return chance < 0.17 ? { onlyIfCached: true } : {};
}

export function cacheControlText({ noCache, maxAge, maxStale, onlyIfCached }: CacheControl): string {
  return [
    ...(noCache ? ['no-cache'] : []),
    ...(maxAge === undefined ? [] : [`max-age=${maxAge}`]),
    ...(maxStale === undefined ? [] : [`max-stale=${maxStale}`]),
    ...(onlyIfCached ? ['only-if-cached'] : []),
  ].join(', ');
}

/** With variables, as programs send it, or with everything written out, as people do. */
function documentOf(asked: readonly Asked[], inline: boolean): Pick<Ask, 'query' | 'variables'> {
  const variables: Record<string, unknown> = {};
  const declared: string[] = [];
  const value = (given: unknown, type: string) => {
    if (inline) return literal(given);
    const name = `v${declared.length}`;
    declared.push(`$${name}: ${type}`);
    variables[name] = given;
    return `$${name}`;
  };
  const fields = asked.map((field, position) => `f${position}: ${fieldText(field, value)}`).join(' ');
  const type = asked.some(({ kind }) => kind === 'create') ? 'mutation' : 'query';
  const head = declared.length > 0 ? `${type} Soak(${declared.join(', ')})` : type;
  return { query: `${head} { ${fields} }`, variables };
}

const PET = '{ id name categoryId status }';

function fieldText(field: Asked, value: (given: unknown, type: string) => string): string {
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
      const rest = [
        ...(status ? [`status: ${status.toUpperCase()}`] : []),
        ...(idempotencyKey === undefined ? [] : [`idempotencyKey: ${value(idempotencyKey, 'String')}`]),
      ];
      const input = [`name: ${value(name, 'String!')}`, `categoryId: ${value(categoryId, 'ID!')}`, ...rest];
      return `createPet(input: { ${input.join(', ')} }) { pet ${PET} userErrors { code message } }`;
    }
    case 'free':
      return 'rateLimit { plan queued windows { window limit used remaining } }';
  }
}

function literal(given: unknown): string {
  return JSON.stringify(given);
}

/** What must be refused, and with which codes. */
function wrongAsk(random: Random): Ask {
  const [query, ...meant] = WRONG[between(random, 0, WRONG.length - 1)] ?? ['', ''];
  const usual = { waitMs: MAX_WAIT_MS, cacheControl: {}, leavesAfterMs: undefined, headers: {} };
  return { query, variables: {}, asked: [], meant, ...usual };
}

const WRONG: readonly (readonly [query: string, ...meant: string[]])[] = [
  ['{ pets(limit: 101) { id } }', 'BAD_USER_INPUT'],
  ['{ pet(id: "9223372036854775808") { id } }', 'BAD_USER_INPUT'],
  ['{ pets { id ', 'GRAPHQL_PARSE_FAILED'],
  ['{ cats { id } }', 'GRAPHQL_VALIDATION_FAILED'],
  [`{ ${Array.from({ length: 201 }, (_, index) => `a${index}: __typename`).join(' ')} }`, 'LIMIT_EXCEEDED'],
];
