import { afterEach, beforeEach, expect, test } from 'vitest';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { startRecordedSandbox } from '../support/start-recorded-sandbox.ts';
import type { RecordedSandbox } from '../support/start-recorded-sandbox.ts';
import { until } from '../support/until.ts';

let redis: RedisServer;
let sandbox: RecordedSandbox;

beforeEach(async () => {
  redis = await startRedis();
  sandbox = await startRecordedSandbox();
});
afterEach(async () => {
  await sandbox.close();
  await redis.close();
});

async function ask({ address }: PetqlProcess, query: string): Promise<any> {
  const response = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer demo-pro' },
    body: JSON.stringify({ query }),
  });
  return response.json();
}

const create = (petql: PetqlProcess, more = '') =>
  ask(petql, `mutation { createPet(input: { name: "Momo", categoryId: 1${more} }) { pet { id } } }`);
const KEY = ', idempotencyKey: "momo-1"';

test.skipIf(!redisIsHere)(
  'a process that starts beside a full Redis reads and creates, and keeps outcomes once there is room',
  async () => {
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    const args = ['--port', '0', '--pet-api-url', sandbox.url, '--plan', 'pro', '--redis-url', redis.url];
    const petql = await startPetql(args);
    expect((await ask(petql, '{ pets(limit: 1) { id } }')).data.pets).toEqual([{ id: '1' }]);
    expect((await create(petql)).errors).toBeUndefined();
    expect((await create(petql, KEY)).errors[0].extensions.code).toBe('IDEMPOTENCY_UNAVAILABLE');
    const posts = () => sandbox.calls.filter(({ method }) => method === 'POST').length;
    expect(posts()).toBe(1);
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    let created: any;
    await until(async () => !(created = await create(petql, KEY)).errors);
    expect(await create(petql, KEY)).toMatchObject({ data: created.data });
    expect(posts()).toBe(2);
    petql.kill('SIGTERM');
    expect(await petql.exited).toBe(0);
  },
  60_000,
);
