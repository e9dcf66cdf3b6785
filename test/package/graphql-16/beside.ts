import { ApolloServer } from '@apollo/server';
import { stitchSchemas } from '@graphql-tools/stitch';
import fastify from 'fastify';
import { version } from 'graphql';
import mercurius from 'mercurius';
import { createGateway } from 'petql';
import { createSandbox } from 'petql/sandbox';

/** Prints what Apollo Server and Mercurius answer over a petql in the same process, and what that answers itself. */
await using sandbox = createSandbox();
await using gateway = createGateway({ ...sandbox.gatewayOptions, petApiKey: 'demo-pro', introspection: false });
const FIRST = '{ pets(limit: 1) { name } }';

const schema = stitchSchemas({
  subschemas: [{ schema: gateway.schema, executor: (request) => gateway.execute<any, any>(request) as Promise<any> }],
  typeDefs: 'extend type Query { shop: String! }',
  resolvers: { Query: { shop: () => 'Berlin' } },
});
const apollo = new ApolloServer({ schema });
const { body } = await apollo.executeOperation({ query: '{ shop pets(limit: 1) { name } }' });
print('Apollo Server', body.kind === 'single' && body.singleResult.data);
await apollo.stop();

const app = fastify();
await app.register(mercurius, {
  schema: 'type Query { first: String }',
  resolvers: {
    Query: {
      first: async () => (await gateway.execute<{ pets: { name: string }[] }>({ document: FIRST })).data?.pets[0]?.name,
    },
  },
});
await app.ready();
print('Mercurius', (await app.graphql('{ first }')).data);
await app.close();

const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
const response = await gateway.fetch('/graphql', { ...init, body: JSON.stringify({ query: FIRST }) });
print('petql', ((await response.json()) as { data: unknown }).data);

// What only the newest graphql 16 has: names that errors do not suggest, and a budget for validation.
const errorOf = async (document: string) => (await gateway.execute({ document })).errors?.[0];
print('an unknown name', (await errorOf('{ petz { id } }'))?.message);
print('a thicket', (await errorOf(`{ ${`... { ${'__typename '.repeat(100)} } `.repeat(9)} }`))?.extensions.limit);
print('graphql', version.split('.')[0]);

function print(name: string, value: unknown): void {
  process.stdout.write(`${name}: ${JSON.stringify(value)}\n`);
}
