import { LISTS, STATUSES } from '../../support/pet-api/contract.ts';
import { PET, listField } from '../../support/pet-documents.ts';

/** The same operations for petql and its rivals. */
export interface Workload {
  readonly name: string;
  readonly work: string;
  /** Sent in turn. */
  readonly requests: readonly Buffer[];
  /** How much CPU time petql may use for an operation at 64 connections, by what it does and the rival: `called bare`. */
  readonly maxRatios?: Readonly<Record<string, number>>;
  /** The same for petql with Redis, compared with petql alone. */
  readonly maxRatioWithRedis?: number;
  /** Whether the cache cannot answer it. Default false. */
  readonly isCallOnly?: true;
  /** Whether one call answers it, which a pass-through could make. Default true. */
  readonly isOneCall?: false;
}

export const PETS = 1_000;

const LIST = { query: `query ($limit: Int!) { pets(limit: $limit) ${PET} }` };
export const LIST_20 = { ...LIST, variables: { limit: 20 } };
const ONE = { query: `query ($id: ID!) { pet(id: $id) ${PET} }` };
export const CREATE = {
  query: 'mutation ($name: String!) { createPet(input: { name: $name, categoryId: "1" }) { pet { id name } } }',
  variables: { name: 'Rex' },
};
const ALIASES = Array.from(
  { length: 20 },
  (_, index) => `p${index}: pet(id: "${1 + (index % 10)}") { id name status }`,
);
const FOUR_LISTS = LISTS.map((list, index) => `l${index}: ${listField(list)} { id name status }`);
const FILTERED = {
  query: 'query ($status: PetStatus, $limit: Int!) { pets(status: $status, limit: $limit) { id name } }',
};
const FILTERS = [...STATUSES.map((status) => status.toUpperCase()), null];
/** Lists and pets by turns, all pets in an order without rhythm. */
const MIXED = Array.from({ length: 2 * PETS }, (_, index) => {
  const number = (Math.floor(index / 2) * 387) % PETS;
  return index % 2 === 0
    ? { ...FILTERED, variables: { status: FILTERS[number % FILTERS.length], limit: 1 + (number % 100) } }
    : { ...ONE, variables: { id: String(1 + number) } };
});
/** Pets that no list shows: each costs a call. */
export const DISTINCT_IDS = Array.from({ length: 600 }, (_, index) => String(400 + index));
export const DISTINCT = DISTINCT_IDS.map((id) => ({ ...ONE, variables: { id } }));

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'list',
    work: 'a list of 20',
    requests: [requestOf(LIST_20)],
    maxRatios: { 'cached bare': 1, 'cached yoga-throttled-cached': 0.35 },
    maxRatioWithRedis: 1.3,
  },
  { name: 'one', work: 'one pet', requests: [requestOf({ ...ONE, variables: { id: '1' } })] },
  {
    name: 'aliases',
    work: '20 aliases of 10 pets',
    requests: [requestOf({ query: `{ ${ALIASES.join(' ')} }` })],
    maxRatios: { 'cached yoga-throttled': 0.35, 'called yoga-throttled': 0.35 },
    isOneCall: false,
  },
  {
    name: 'four-lists',
    work: 'four lists in one operation',
    requests: [requestOf({ query: `{ ${FOUR_LISTS.join(' ')} }` })],
    maxRatios: { 'cached yoga-throttled': 0.35, 'called yoga-throttled': 0.35 },
    isOneCall: false,
  },
  {
    name: 'mixed',
    work: 'single pets and lists with variables, 1,000 pets',
    requests: MIXED.map((operation) => requestOf(operation)),
    maxRatios: { 'cached yoga': 0.9, 'cached yoga-throttled-cached': 0.6 },
  },
  {
    name: 'distinct',
    work: 'a pet that no list shows',
    requests: DISTINCT.map((operation) => requestOf(operation)),
    maxRatios: { 'called yoga-throttled': 1.5, 'called yoga-throttled-cached': 1 },
  },
  {
    name: 'create',
    work: 'createPet',
    requests: [requestOf(CREATE)],
    isCallOnly: true,
    maxRatios: { 'called yoga': 2.4, 'called yoga-throttled': 1.5, 'called yoga-throttled-cached': 0.75 },
    maxRatioWithRedis: 2,
  },
];

export function requestOf(operation: object, key = 'a-key'): Buffer {
  const body = JSON.stringify(operation);
  const head = [
    'POST /graphql HTTP/1.1',
    'host: 127.0.0.1',
    `authorization: Bearer ${key}`,
    'accept: application/json',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`);
}
