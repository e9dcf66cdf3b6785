import { expect, onTestFinished, test, vi } from 'vitest';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { startEmbedded } from '../support/start-gateway.ts';

/** No other timer is so long. */
const MAX_WAIT_MS = 54_321;
const BY_IDS = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';

// Calls stay as few without DataLoader, since the planner runs once a turn; but each read would be a batch of its own.
test('a hundred ids of one request are one batch: one timer for its deadline beside that of the line, and one listener for its abort', async () => {
  await using gateway = await startEmbedded({ maxWaitMs: MAX_WAIT_MS }, { pets: petSeeds(99) });
  const ask = (ids: string[], signal: AbortSignal) =>
    gateway.execute({ document: BY_IDS, variables: { ids }, apiKey: 'demo-free', signal });
  const { signal } = new AbortController();
  const startTimer = vi.spyOn(globalThis, 'setTimeout');
  const listen = vi.spyOn(signal, 'addEventListener');
  onTestFinished(() => startTimer.mockRestore());

  const ids = Array.from({ length: 100 }, (_, index) => String(index + 1));
  const { data } = await ask(ids, signal);
  expect(data?.['petsById']).toHaveLength(100);
  expect(gateway.petApi.log).toHaveLength(1);
  const forDeadline = startTimer.mock.calls.filter(([, ms = 0]) => Math.abs(ms - MAX_WAIT_MS) < 5_000);
  expect(forDeadline).toHaveLength(2);
  expect(listen).toHaveBeenCalledTimes(1);
});
