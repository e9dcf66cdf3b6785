import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import process from 'node:process';
import DataLoader from 'dataloader';
import { createSchema, createYoga } from 'graphql-yoga';
import { Pool } from 'undici';

/**
 * graphql-yoga with petql's schema, as a good engineer writes it: connections that stay open, one loader for each request, which
 * makes equal reads of an operation one call, and Yoga's cache of parsed and validated documents.
 */
const { origin, pathname } = new URL(process.env.PET_API_URL);
const pool = new Pool(origin, { connections: 64 });

const resolvers = {
  Pet: { status: ({ status }) => status?.toUpperCase() },
  Query: {
    pets: (_root, { status, limit }, { reads }) =>
      reads.load(`/pets?limit=${limit}${status ? `&status=${status.toLowerCase()}` : ''}`),
    pet: (_root, { id }, { reads }) => reads.load(`/pets/${id}`),
    petsById: (_root, { ids }, { reads }) => reads.loadMany(ids.map((id) => `/pets/${id}`)),
  },
  Mutation: {
    async createPet(_root, { input: { name, categoryId } }, { authorization }) {
      const body = JSON.stringify({ name, categoryId: Number(categoryId) });
      return { pet: await call('POST', '/pets', { authorization, body }), userErrors: [] };
    },
  },
};

function createContext({ request }) {
  const authorization = request.headers.get('authorization');
  const read = (path) => call('GET', path, { authorization }).catch((error) => error);
  return { authorization, reads: new DataLoader((paths) => Promise.all(paths.map(read))) };
}

async function call(method, path, { authorization, body }) {
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
