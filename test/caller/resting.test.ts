import { expect, test } from 'vitest';
import { readFreshness } from '../../src/caller/freshness.ts';
import { createGetRoute } from '../../src/caller/get-route.ts';
import { createKnowledge } from '../../src/caller/knowledge.ts';
import { createReads } from '../../src/caller/reads.ts';
import type { ReadTurn } from '../../src/caller/reads.ts';
import { createRefusedKey } from '../../src/caller/refused-key.ts';
import { systemClock as clock } from '../../src/clock.ts';
import type { Int64 } from '../../src/int64.ts';
import { silentLog } from '../../src/log.ts';
import { modelPet } from './model-store.ts';

const SEVEN = { kind: 'animal', id: '7' as Int64 } as const;
const FAILED = { outcome: { kind: 'failed', status: 503, code: undefined }, sent: true };
const PLAN = { kind: 'refused', reason: 'plan', retryAfterMs: 60_000, window: 'MINUTE' };
const FOUND = { outcome: { kind: 'ok', value: modelPet(7) }, sent: true };

/** Reads of a caller whose first call fails, with room for a retry that is gone when the retry is to be sent. */
function startReads({ roomLasts }: { roomLasts: boolean }) {
  let calls = 0;
  let closed = false;
  const petApi = { getPet: () => Promise.resolve((calls += 1) === 1 ? FAILED : FOUND) };
  const throttle = {
    async pass(_turn: unknown, send: () => Promise<unknown> | undefined) {
      await Promise.resolve();
      const sending = send();
      return sending ? { kind: 'answered', answer: await sending } : { kind: 'unused' };
    },
    standing: () => undefined,
    outlook: () => ({ waitMs: closed ? 60_000 : 0, refused: PLAN }),
  };
  const reads = createReads({
    apiKey: 'key',
    petApi: petApi as any,
    throttle: throttle as any,
    refusedKey: createRefusedKey(clock),
    getRoute: createGetRoute({ clock, log: silentLog, upstreamNow: () => 0 }),
    knowledge: createKnowledge(),
    allowance: { allows: () => true, spend: () => undefined, refund: () => undefined },
    clock,
    share: undefined,
    retryQuota: { called: () => undefined, room: 1, take: () => roomLasts },
    retryPausesMs: [50],
    onRetry: () => undefined,
  });
  const freshness = readFreshness(undefined, { maxAgeMs: 0, maxStaleMs: 0 });
  const turn: ReadTurn = {
    freshness,
    deadlineMs: clock.elapsed() + 10_000,
    signal: undefined,
    charge: () => undefined,
    refund: () => undefined,
  };
  return {
    wait: (more: Partial<ReadTurn> = {}) => reads.wait(SEVEN, { ...turn, ...more }),
    calls: () => calls,
    /** The plan is used up. */
    close() {
      closed = true;
      reads.review();
    },
  };
}

test('a retry is sent while there is room, and else the failure is the answer', async () => {
  const roomy = startReads({ roomLasts: true });
  expect((await roomy.wait()).pets).toEqual([modelPet(7)]);
  expect(roomy.calls()).toBe(2);
  const full = startReads({ roomLasts: false });
  await expect(full.wait()).rejects.toMatchObject({ code: 'DOWNSTREAM_SERVICE_ERROR' });
  expect(full.calls()).toBe(1);
});

test('whoever comes while others rest has a first call of its own, whatever room there is for retries', async () => {
  const { wait, calls } = startReads({ roomLasts: false });
  const first = wait();
  await expect.poll(calls).toBe(1);
  const second = wait();
  expect((await Promise.all([first, second])).map(({ pets }) => pets)).toEqual([[modelPet(7)], [modelPet(7)]]);
  expect(calls()).toBe(2);
});

test('whoever cannot wait until the others have rested asks at once', async () => {
  const { wait, calls } = startReads({ roomLasts: true });
  const first = wait();
  await expect.poll(calls).toBe(1);
  const hasty = wait({ deadlineMs: clock.elapsed() + 1 });
  expect((await hasty).pets).toEqual([modelPet(7)]);
  await first;
  expect(calls()).toBe(2);
});

test('whoever comes after a call has failed is told of the plan that keeps the next one back, and not of that call', async () => {
  const { wait, calls, close } = startReads({ roomLasts: true });
  const first = wait();
  await expect.poll(calls).toBe(1);
  const second = wait();
  close();
  await expect(first).rejects.toMatchObject({ code: 'DOWNSTREAM_SERVICE_ERROR' });
  await expect(second).rejects.toMatchObject({ code: 'RATE_LIMITED' });
});
