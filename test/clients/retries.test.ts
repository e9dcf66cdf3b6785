import { afterEach, expect, test, vi } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { brokenPromises } from '../support/check.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';
import { CLIENTS, runSnippet } from './snippets.ts';

const READS = 90;
const ORIGIN = 'http://localhost';

afterEach(() => void vi.unstubAllGlobals());

test.each(CLIENTS)('the snippet for %s loses none of 90 reads at once with an idle Free key', async (client) => {
  const plan = { ...PLANS.free, windows: 'sliding', tells: 'minute' } as const;
  await using world = await createWorld({ seed: 61, startsAt: '2026-11-21T09:41:20Z', keys: { 'demo-free': plan } });
  const petql = await world.start({ maxWaitMs: 10_000 });
  const toldMs: number[] = [];
  vi.stubGlobal('fetch', async (input: RequestInfo | URL, init?: RequestInit) => {
    const response = await petql.fetch(new Request(input, init));
    const told = /"retryAfterMs":(\d+)/.exec(await response.clone().text())?.[1];
    if (told !== undefined) toldMs.push(Number(told));
    return response;
  });
  const readPet = await world.until(runSnippet(client, { origin: ORIGIN, print() {} }));

  // No list shows these pets, so each needs a call.
  const ids = Array.from({ length: READS }, (_, index) => String(900_000 + index));
  const results = await world.until(Promise.all(ids.map((id) => readPet(id))));

  expect(results.flatMap(({ error, errors }) => error ?? errors ?? [])).toEqual([]);
  expect(world.petApi.log.filter(({ status }) => status === 404)).toHaveLength(READS);
  // Some were told to wait for longer than a minute.
  expect(Math.max(...toldMs)).toBeGreaterThan(MINUTE_MS);
  expect(brokenPromises(world.history())).toEqual([]);
});
