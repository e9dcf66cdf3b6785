import { expect, onTestFinished, test } from 'vitest';
import { createRedis } from '../support/redis-double.ts';
import { overHttp, startEmbedded } from '../support/start-gateway.ts';

const KEY = 'demo-pro';

/** Staging and production, each with a petql over it, and with the same API key and Redis. */
async function startBoth() {
  const redis = createRedis({ seed: 1 });
  const start = async (name: string) => {
    const gateway = await startEmbedded(
      { redisUrl: 'redis://redis.test', redisConnection: redis.connect() },
      { pets: [{ name, categoryId: '1', status: 'available' }] },
      overHttp,
    );
    onTestFinished(() => gateway[Symbol.asyncDispose]());
    const create = async (idempotencyKey: string) => {
      const input = `name: "${name}", categoryId: 1, idempotencyKey: "${idempotencyKey}"`;
      const document = `mutation { createPet(input: { ${input} }) { pet { id name } } }`;
      return gateway.execute<any>({ document, apiKey: KEY });
    };
    return { ...gateway, create };
  };
  return [await start('Staging'), await start('Production')] as const;
}

test('on one Redis with one API key show each their own pets, and count their own calls', async () => {
  const [staging, production] = await startBoth();
  for (const [gateway, name] of [
    [staging, 'Staging'],
    [production, 'Production'],
  ] as const) {
    const { data, extensions } = await gateway.execute({ document: '{ pets { name } }', apiKey: KEY });
    expect({ data, calls: extensions?.petql.upstreamCalls }).toEqual({ data: { pets: [{ name }] }, calls: 1 });
    const { data: quota } = await gateway.execute({ document: '{ rateLimit { windows { used } } }', apiKey: KEY });
    expect(quota).toEqual({ rateLimit: { windows: [{ used: 1 }, { used: 1 }] } });
  }
});

test('on one Redis with one API key create each their own pet for the same idempotency key', async () => {
  const [staging, production] = await startBoth();
  await staging.create('same');
  expect((await production.create('same')).data.createPet.pet.name).toBe('Production');
  expect(production.petApi.log.filter(({ method }) => method === 'POST')).toHaveLength(1);
});
