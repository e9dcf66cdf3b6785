import { expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway } from '../../src/index.ts';
import { startEmbedded } from '../support/start-gateway.ts';

const PETS = '{ pets(limit: 1) { id } }';
const BUDGET = '{ rateLimit { windows { used } } }';

interface Budget {
  readonly rateLimit: { readonly windows: readonly { readonly used: number }[] };
}

test('two gateways in one process share nothing: no budget, no refused key, no key of the server, and no end', async () => {
  await using one = await startEmbedded({ petApiKey: 'demo-pro' });
  await using other = createGatewayOver(one.sandbox.url);
  const used = async ({ execute }: Gateway) => {
    const { data } = await execute<Budget>({ document: BUDGET, apiKey: 'demo-free' });
    return data?.rateLimit.windows.map((window) => window.used);
  };
  await one.execute({ document: PETS, apiKey: 'demo-free' });
  expect([await used(one), await used(other)]).toEqual([[1, 1], []]);

  const strays = () => one.sandbox.calls.filter(({ key }) => key === 'stray').length;
  for (const gateway of [one, one, other, other]) await gateway.execute({ document: PETS, apiKey: 'stray' });
  expect(strays()).toBe(2);

  expect((await other.execute({ document: PETS })).errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);

  await one.close();
  expect((await other.execute({ document: PETS, apiKey: 'demo-business' })).errors).toBeUndefined();
});

function createGatewayOver(petApiUrl: string) {
  const gateway = createGateway({ petApiUrl });
  return { ...gateway, [Symbol.asyncDispose]: () => gateway.close() };
}
