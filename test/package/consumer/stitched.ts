import { stitchSchemas } from '@graphql-tools/stitch';
import { graphql } from 'graphql';
import { createGateway } from 'petql';
import { createSandbox } from 'petql/sandbox';

/** Prints what a schema answers that has petql's fields and one of its own, and what that cost. */
await using sandbox = createSandbox();
await using gateway = createGateway({ ...sandbox.gatewayOptions, petApiKey: 'demo-pro' });

export const schema = stitchSchemas<{ userId?: string }>({
  subschemas: [
    {
      schema: gateway.schema,
      executor: (request) =>
        gateway.execute<any, any>({ ...request, visitor: request.context?.userId }) as Promise<any>,
    },
  ],
  typeDefs: 'extend type Pet { photoUrl: String! }',
  resolvers: { Pet: { photoUrl: { selectionSet: '{ id }', resolve: ({ id }) => `https://photos.example/${id}.jpg` } } },
});

const SOURCES = [
  '{ pets(limit: 1) { name photoUrl } none: pets(limit: 0) { photoUrl } }',
  'mutation { createPet(input: { name: "Momo", categoryId: 3 }) { pet { name photoUrl } } }',
  '{ rateLimit { windows { window used } } }',
];
const contextValue = { userId: '7' };
for (const source of SOURCES) {
  process.stdout.write(`${JSON.stringify(await graphql({ schema, source, contextValue }))}\n`);
}
process.stdout.write(`${sandbox.calls.length} calls\n`);
