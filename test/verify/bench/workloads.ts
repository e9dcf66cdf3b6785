import { STATUSES } from '../../support/pet-api/pet-store.ts';

/** petql and a rival do the same work in turn, each a single thread, with the load in another process. */
export interface Workload {
  readonly name: string;
  readonly work: string;
  /** Sent to petql in turn. */
  readonly requests: readonly Buffer[];
  /** Default 64. */
  readonly connections?: number;
  /** Default: petql's own ages. */
  readonly maxAgeMs?: number;
  /** `bare` is node:http with a constant body, `yoga` is graphql-yoga over undici, `one key` is petql with the first request. */
  readonly rival: 'bare' | 'one key' | 'yoga';
  /** How much CPU time petql may use for an operation, compared with the rival. */
  readonly maxRatio: number;
  /** Whether each round starts a process and sends one request. Default false. */
  readonly cold?: true;
}

export const PETS = 1_000;
const NAMES = STATUSES.map((status) => status.toUpperCase());

const LIST = { query: 'query ($limit: Int!) { pets(limit: $limit) { id name categoryId status } }' };
const LIST_20 = { ...LIST, variables: { limit: 20 } };
const ONE = { query: 'query ($id: ID!) { pet(id: $id) { id name categoryId status } }' };
const CREATE = {
  query: 'mutation ($name: String!) { createPet(input: { name: $name, categoryId: "1" }) { pet { id name } } }',
  variables: { name: 'Rex' },
};
const ALIASES = Array.from(
  { length: 20 },
  (_, index) => `p${index}: pet(id: "${1 + (index % 10)}") { id name status }`,
);
const LISTS = ['', ...NAMES.map((status) => `(status: ${status})`)].map(
  (filter, index) => `l${index}: pets${filter} { id name status }`,
);
const FILTERED = {
  query: 'query ($status: PetStatus, $limit: Int!) { pets(status: $status, limit: $limit) { id name } }',
};
const FILTERS = [...NAMES, null];
/** Lists and pets by turns, all pets in an order without rhythm. */
const MIXED = Array.from({ length: 2 * PETS }, (_, index) => {
  const number = (Math.floor(index / 2) * 387) % PETS;
  return index % 2 === 0
    ? { ...FILTERED, variables: { status: FILTERS[number % FILTERS.length], limit: 1 + (number % 100) } }
    : { ...ONE, variables: { id: String(1 + number) } };
});

/** Nothing is refreshed while the bench runs. */
const CACHED_MS = 600_000;
export const WORKLOADS: readonly Workload[] = [
  {
    name: 'list',
    work: 'a list of 20 from the cache, against node:http with a constant body',
    requests: [requestOf(LIST_20)],
    maxAgeMs: CACHED_MS,
    rival: 'bare',
    maxRatio: 1 / 0.75,
  },
  {
    name: 'keys',
    work: 'the same from 1,000 keys in turn, against one key',
    requests: Array.from({ length: 1_000 }, (_, index) => requestOf(LIST_20, `key-${index}`)),
    maxAgeMs: CACHED_MS,
    rival: 'one key',
    maxRatio: 1 / 0.9,
  },
  { name: 'create', work: 'createPet', requests: [requestOf(CREATE)], rival: 'yoga', maxRatio: 2.6 },
  {
    name: 'call',
    work: 'a list of 20, each with its own call, one connection',
    requests: [requestOf(LIST_20)],
    connections: 1,
    maxAgeMs: 0,
    rival: 'yoga',
    maxRatio: 3.4,
  },
  {
    name: 'mixed',
    work: 'single pets and lists with variables, 1,000 pets',
    requests: MIXED.map((operation) => requestOf(operation)),
    rival: 'yoga',
    maxRatio: 0.9,
  },
  {
    name: 'aliases',
    work: '20 aliases of 10 ids',
    requests: [requestOf({ query: `{ ${ALIASES.join(' ')} }` })],
    rival: 'yoga',
    maxRatio: 0.35,
  },
  {
    name: 'four-lists',
    work: 'four lists in one operation',
    requests: [requestOf({ query: `{ ${LISTS.join(' ')} }` })],
    rival: 'yoga',
    maxRatio: 0.35,
  },
  {
    name: 'start',
    work: 'from the start of the process to the first answer',
    requests: [requestOf(LIST_20)],
    connections: 1,
    rival: 'yoga',
    maxRatio: 1.7,
    cold: true,
  },
];

function requestOf(operation: object, key = 'a-key'): Buffer {
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
