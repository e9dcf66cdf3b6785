import { expect, test } from 'vitest';
import type { Int64 } from '../../src/int64.ts';
import { PLANS } from '../../src/plan.ts';
import type { UpstreamAnswer } from '../../src/upstream/pet-api.ts';
import { modelPet } from './model-store.ts';
import { HUNDRED, answered, startCallers } from './start-callers.ts';

const UNSENT: UpstreamAnswer<never> = {
  outcome: { kind: 'no-answer', reason: 'unreachable' },
  sent: false,
  rateLimit: undefined,
};
const UNREACHABLE = { code: 'DOWNSTREAM_SERVICE_ERROR' };

/** A store that answers while there is a connection. */
function start() {
  let connected = true;
  let tries = 0;
  const answer = async <T>(value: T): Promise<UpstreamAnswer<T>> => {
    tries += 1;
    return connected ? answered(value, PLANS.free) : UNSENT;
  };
  const gateway = startCallers(
    {
      listPets: () => answer(HUNDRED),
      getPet: (id) => answer(modelPet(Number(id))),
    },
    PLANS.free,
  );
  return {
    ...gateway,
    tries: () => tries,
    connect(now: boolean) {
      connected = now;
    },
    made: () => gateway.callers.views().map(({ made }) => made),
  };
}

const animal = (id: number) => String(id) as Int64;

test('a read whose connection was never made costs its request no call, and its key none', async () => {
  const { ask, connect, made, callers } = start();
  const good = ask('key');
  await good.byId(animal(1_001));
  connect(false);
  const bad = ask('key');
  await expect(bad.byId(animal(1_002))).rejects.toMatchObject(UNREACHABLE);
  expect([good.usage().upstreamCalls, bad.usage().upstreamCalls]).toEqual([1, 0]);
  expect(made()).toEqual([1]);
  await callers.close();
});

test('what is served from memory after such a read has cost no call', async () => {
  const { ask, connect, callers } = start();
  await ask('key').list(undefined, 1);
  connect(false);
  const stale = ask('key');
  expect(await stale.list(undefined, 1)).toHaveLength(1);
  expect(stale.usage()).toMatchObject({ upstreamCalls: 0, servedWithoutCall: 1, staleReason: 'UPSTREAM_FAILED' });
  expect(stale.saved()).toEqual({ UPSTREAM_FAILED: 1 });
  await callers.close();
});

test('a read that gets its connection when it is tried again pays once', async () => {
  const { ask, connect, tries, made, callers } = start();
  // Retries are a tenth of the calls.
  for (let id = 0; id < 20; id += 1) await ask('other').byId(animal(1_000 + id));
  const before = tries();
  connect(false);
  const pets = ask('key');
  const pet = Promise.resolve(pets.byId(animal(2_000)));
  await expect.poll(tries).toBe(before + 1);
  connect(true);
  expect(await pet).toMatchObject({ id: '2000' });
  expect(tries()).toBe(before + 2);
  expect(pets.usage()).toMatchObject({ upstreamCalls: 1, servedWithoutCall: 0 });
  expect(made()).toEqual([1, before]);
  await callers.close();
});

test('nothing of what may be spent on refreshing goes into reads that were not sent', async () => {
  const { ask, connect, callers } = start();
  await ask('key').list(undefined, 1);
  connect(false);
  // More than a key of this plan may spend at once.
  for (let id = 0; id < 150; id += 1) {
    await expect(Promise.resolve(ask('key').byId(animal(1_000 + id)))).rejects.toMatchObject(UNREACHABLE);
  }
  connect(true);
  const refreshed = ask('key');
  await refreshed.list(undefined, 1);
  expect(refreshed.usage()).toMatchObject({ upstreamCalls: 1, staleReason: undefined });
  await callers.close();
});
