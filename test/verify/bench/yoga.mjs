import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import process from 'node:process';
import { createSchema, createYoga } from 'graphql-yoga';

/** graphql-yoga with petql's schema, as a first version is written: one fetch for each field, nothing else. */
const resolvers = {
  Pet: { status: ({ status }) => status?.toUpperCase() },
  Query: {
    pets: (_root, { status, limit }, { request }) =>
      call(request, `/pets?limit=${limit}${status ? `&status=${status.toLowerCase()}` : ''}`),
    pet: (_root, { id }, { request }) => call(request, `/pets/${id}`),
    petsById: (_root, { ids }, { request }) => ids.map((id) => call(request, `/pets/${id}`)),
  },
  Mutation: {
    async createPet(_root, { input: { name, categoryId } }, { request }) {
      const body = JSON.stringify({ name, categoryId: Number(categoryId) });
      return { pet: await call(request, '/pets', { method: 'POST', body }), userErrors: [] };
    },
  },
};

async function call(request, path, options) {
  const headers = { authorization: request.headers.get('authorization'), 'content-type': 'application/json' };
  const response = await fetch(process.env.PET_API_URL + path, { ...options, headers });
  return response.json();
}

const typeDefs = readFileSync(new URL('../../../schema/schema.graphql', import.meta.url), 'utf8');
const yoga = createYoga({ schema: createSchema({ typeDefs, resolvers }), logging: false });
createServer((request, response) => void yoga(request, response)).listen(0, '127.0.0.1');
