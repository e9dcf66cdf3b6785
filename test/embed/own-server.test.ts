import { graphql } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { expect, test } from 'vitest';
import { startEmbedded } from '../support/start-gateway.ts';

const MESSAGE = expect.stringMatching(/^gateway\.schema runs in petql alone: call gateway\.execute or gateway\.fetch/);

test.each([
  ['{ pets { id } }', undefined],
  ['{ pet(id: "1") { id } }', {}],
  ['{ petsById(ids: ["1"]) { id } }', { pets: [{ id: '1' }] }],
  ['{ rateLimit { plan } }', { pets: { list: () => [] } }],
  ['mutation { createPet(input: { name: "Momo", categoryId: 3 }) { pet { id } } }', null],
])('the schema says where it runs to who executes %s with the context %j', async (source, contextValue) => {
  await using gateway = await startEmbedded({ petApiKey: 'demo-pro' });
  const { errors } = await graphql({ schema: gateway.schema, source, contextValue });
  expect(errors).toMatchObject([{ message: MESSAGE }]);
  expect(gateway.petApi.log).toHaveLength(0);
});

test('a server that masks errors shows it too', async () => {
  await using gateway = await startEmbedded({ petApiKey: 'demo-pro' });
  const yoga = createYoga({ schema: gateway.schema, logging: false });
  const response = await yoga.fetch('http://localhost/graphql?query={pets{id}}');
  expect(await response.json()).toMatchObject({ errors: [{ message: MESSAGE }] });
});
