import { expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';

/** A key whose minute has more than its half used. */
async function startBusy() {
  // No minute of the pet API ends during a test.
  const aheadMs = Date.UTC(2026, 10, 21, 9, 41, 5) - Date.now();
  const gateway = await startGateway({
    petApi: { keys: { 'a-key': { perMinute: 10, perDay: 1_000 } }, now: () => Date.now() + aheadMs },
    gateway: { petApiKey: 'a-key', plan: '10/1000' },
  });
  const create = 'mutation { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } } }';
  for (let call = 0; call < 6; call += 1) await gateway.query(create, { headers: { authorization: null } });
  return gateway;
}

test.each([
  ['u=7', true],
  ['i, u=7;x', true],
  ['u=6', false],
  ['u=0', false],
  ['u=77', false],
  ['high', false],
])('Priority: %s lowers a request to background: %s', async (priority, isBackground) => {
  await using gateway = await startBusy();
  const headers = { authorization: null, priority, prefer: 'wait=0' };
  const { errors } = await gateway.query('{ pets { id } }', { headers });
  const isRefused = errors?.[0]?.message.startsWith('Background operations leave half of each minute') ?? false;
  expect([isRefused, errors?.length ?? 0]).toEqual([isBackground, isBackground ? 1 : 0]);
});
