import { createServer } from 'node:http';
import process from 'node:process';
import { createSchema, createYoga } from 'graphql-yoga';
import { getJson } from './get-json.js';
import { resolversOver, typeDefs } from './type-defs.js';

/** graphql-yoga as its documentation has it, over undici. */
const resolvers = resolversOver((path, { request }) => getJson(path, request.headers.get('authorization')));
const yoga = createYoga({ schema: createSchema({ typeDefs, resolvers }), logging: false });
createServer((request, response) => void yoga(request, response)).listen(Number(process.env.PORT), '127.0.0.1');
