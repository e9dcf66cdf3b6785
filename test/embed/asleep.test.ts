import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startEmbedded } from '../support/start-embedded.ts';

/** What a machine's sleep moves on Linux: its wall clock and the time that it is up, and not `performance.now`. */
const HOUR_MS = 3_600_000;
const apiKey = 'demo-free';
const document = '{ pets(limit: 1) { id } }';

const machine = vi.hoisted(() => ({ sleptMs: 0 }));

vi.mock(import('node:os'), async (original) => {
  const os = await original();
  return { ...os, uptime: () => (performance.now() + machine.sleptMs) / 1_000 };
});

beforeEach(() => {
  machine.sleptMs = 0;
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
});
afterEach(() => void vi.useRealTimers());

function sleep(ms: number): void {
  machine.sleptMs += ms;
  vi.setSystemTime(Date.now() + ms);
  // To fall asleep and wake takes the machine a moment.
  vi.advanceTimersByTime(20);
}

/** Zod copies a default that is an object: a gateway without a clock did not know the machine's own, and counted no sleep. */
test('a day that was used up before the machine fell asleep is over once it wakes on the next', async () => {
  const keys = { [apiKey]: { name: 'Tiny', perMinute: 60, perDay: 3 } };
  await using gateway = await startEmbedded({ plan: '60/3', maxWaitMs: 500 }, { keys });
  const ask = () => gateway.execute({ document, apiKey, cacheControl: 'no-cache' });
  for (let count = 0; count < 3; count += 1) expect(await ask()).not.toHaveProperty('errors');
  expect(await ask()).toMatchObject({ errors: [{ extensions: { code: 'RATE_LIMITED', window: 'DAY' } }] });

  sleep(25 * HOUR_MS);
  expect(await ask()).not.toHaveProperty('errors');
  expect(gateway.sandbox.calls.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});

/** Ages went by `performance.now` alone: after a night, yesterday's answer was milliseconds old. */
test('what was known before the machine fell asleep is as old as it is', async () => {
  await using gateway = await startEmbedded();
  const ask = async (cacheControl?: string) => {
    const { data, errors, extensions } = await gateway.execute({
      document,
      apiKey,
      ...(cacheControl && { cacheControl }),
    });
    return { data, errors, usage: extensions?.['petql'] as Record<string, unknown> };
  };
  expect((await ask()).usage).toMatchObject({ upstreamCalls: 1 });
  sleep(60_000);
  const kept = (await ask('only-if-cached, max-age=120')).usage;
  expect(kept).toMatchObject({ upstreamCalls: 0, servedWithoutCall: 1 });
  expect(kept['oldestAgeMs']).toBeGreaterThanOrEqual(60_000);

  sleep(HOUR_MS);
  expect(await ask('only-if-cached, max-age=120')).toMatchObject({ errors: [{}], usage: { upstreamCalls: 0 } });
  const anew = (await ask('max-age=60')).usage;
  expect(anew).toMatchObject({ upstreamCalls: 1, servedWithoutCall: 0 });
  expect(anew['oldestAgeMs']).toBeLessThan(60_000);
});
