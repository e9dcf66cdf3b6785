import { expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { startEmbedded } from '../support/start-embedded.ts';

const document = '{ pets(limit: 1) { id } rateLimit { windows { used } } }';

test('two gateways in one process share nothing: no plan, no refused key, no key of the server, and no end', async () => {
  await using one = await startEmbedded({ petApiKey: 'demo-pro' });
  await using other = createGatewayOver(one.sandbox.url);
  await one.execute({ document, apiKey: 'demo-free' });
  const answer = await other.execute<{ rateLimit: { windows: { used: number }[] } }>({ document, apiKey: 'demo-free' });
  // What the first one spent is not known to the second, but for what the service tells it.
  expect(answer.errors).toBeUndefined();
  expect(one.sandbox.calls.map(({ key }) => key)).toEqual(['demo-free', 'demo-free']);

  await one.execute({ document, apiKey: 'stray' });
  await one.execute({ document, apiKey: 'stray' });
  expect(one.sandbox.calls.filter(({ key }) => key === 'stray')).toHaveLength(1);
  await other.execute({ document, apiKey: 'stray' });
  expect(one.sandbox.calls.filter(({ key }) => key === 'stray')).toHaveLength(2);

  expect((await other.execute({ document })).errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);

  await one.close();
  expect((await other.execute({ document, apiKey: 'demo-business' })).errors).toBeUndefined();
});

function createGatewayOver(petApiUrl: string) {
  const gateway = createGateway({ petApiUrl });
  return { ...gateway, [Symbol.asyncDispose]: () => gateway.close() };
}
