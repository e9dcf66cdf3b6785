import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import process from 'node:process';
import Bottleneck from 'bottleneck';
import DataLoader from 'dataloader';
import { createSchema, createYoga } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import { Pool } from 'undici';

/**
 * graphql-yoga with petql's schema, as a good engineer writes it: connections that stay open, and Yoga's cache of parsed and
 * validated documents. With CALLS_A_MINUTE also one loader for each request, which makes equal reads of an operation one call, and
 * Bottleneck with a fixed plan. With MAX_AGE_MS also a cache of what reads got, and one call for equal reads of a key at a time.
 */
const { origin, pathname } = new URL(process.env.PET_API_URL);
const pool = new Pool(origin, { connections: 64 });
const callsAMinute = Number(process.env.CALLS_A_MINUTE ?? 0);
const limiter = new Bottleneck({
  maxConcurrent: 50,
  reservoir: callsAMinute,
  reservoirRefreshAmount: callsAMinute,
  reservoirRefreshInterval: 60_000,
});

const resolvers = {
  Pet: { status: ({ status }) => status?.toUpperCase() },
  Query: {
    pets: (_root, { status, limit }, { read }) =>
      read(`/pets?limit=${limit}${status ? `&status=${status.toLowerCase()}` : ''}`),
    pet: (_root, { id }, { read }) => read(`/pets/${id}`),
    petsById: (_root, { ids }, { read }) => ids.map((id) => read(`/pets/${id}`)),
  },
  Mutation: {
    async createPet(_root, { input: { name, categoryId } }, { authorization }) {
      const body = JSON.stringify({ name, categoryId: Number(categoryId) });
      cache.clear();
      return { pet: await call('POST', '/pets', { authorization, body }), userErrors: [] };
    },
  },
};

const maxAgeMs = process.env.MAX_AGE_MS === undefined ? undefined : Number(process.env.MAX_AGE_MS);
/** What each read got or will get, by key and path. */
const cache = new LRUCache({ max: 10_000, ttl: maxAgeMs || 1, ttlResolution: 0 });

function createContext({ request }) {
  const authorization = request.headers.get('authorization');
  const read = (path) => {
    const get = () => call('GET', path, { authorization });
    return maxAgeMs === undefined ? get() : cachedRead(`${authorization} ${path}`, get);
  };
  if (!callsAMinute) return { authorization, read };

  const loader = new DataLoader((paths) => Promise.all(paths.map((path) => read(path).catch((error) => error))));
  return { authorization, read: (path) => loader.load(path) };
}

function cachedRead(name, get) {
  const found = cache.get(name);
  if (found) return found;
  const reading = get();
  cache.set(name, reading);
  const forget = () => cache.delete(name);
  // Without an age it is for those alone who wait at the same time.
  if (maxAgeMs === 0) reading.then(forget, forget);
  else reading.catch(forget);
  return reading;
}

function call(method, path, options) {
  return callsAMinute ? limiter.schedule(send, method, path, options) : send(method, path, options);
}

async function send(method, path, { authorization, body }) {
  const headers = { authorization, ...(body && { 'content-type': 'application/json' }) };
  const response = await pool.request({ method, path: pathname + path, headers, body });
  if (response.statusCode === 404) return response.body.dump().then(() => null);
  if (response.statusCode >= 300) throw new Error(`the pet API answered ${response.statusCode}`);
  return response.body.json();
}

const typeDefs = readFileSync(new URL('../../../schema/schema.graphql', import.meta.url), 'utf8');
const yoga = createYoga({
  schema: createSchema({ typeDefs, resolvers }),
  context: createContext,
  parserAndValidationCache: true,
  logging: false,
});
createServer((request, response) => void yoga(request, response)).listen(0, '127.0.0.1');
