import process from 'node:process';
import Fastify from 'fastify';
import mercurius from 'mercurius';
import { getJson } from './get-json.js';
import { resolversOver, typeDefs } from './type-defs.js';

/** Mercurius over undici; JIT=1 compiles an operation once it was asked for, as its documentation advises. */
const resolvers = resolversOver((path, { authorization }) => getJson(path, authorization));
const app = Fastify();
app.register(mercurius, {
  schema: typeDefs,
  resolvers,
  context: ({ headers: { authorization } }) => ({ authorization }),
  ...(process.env.JIT ? { jit: 1 } : {}),
});
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
