import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRetryQuota } from '../../src/caller/retry-quota.ts';

const MINUTE_MS = 60_000;

interface Step {
  readonly kind: 'call' | 'retry';
  readonly count: number;
  readonly afterMs: number;
}

/** Bursts and gaps, those of about a minute most of all. */
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('call', 'call', 'retry'),
    count: fc.oneof(fc.nat(3), fc.nat(40)),
    afterMs: fc.oneof(fc.constant(0), fc.nat(2_000), fc.integer({ min: 57_000, max: 63_000 }), fc.nat(200_000)),
  }),
  { maxLength: 60 },
);

test('whenever a retry is sent, the retries of the minute that ends then are at most a tenth of its other calls', () => {
  fc.assert(
    fc.property(steps, fc.double({ min: 0, max: 10_000, noNaN: true }), (plan, startMs) => {
      let nowMs = startMs;
      const quota = createRetryQuota({ elapsed: () => nowMs });
      let tooMany = false;
      const calls: number[] = [];
      const retries: number[] = [];
      const within = (times: readonly number[]) => times.filter((atMs) => atMs > nowMs - MINUTE_MS).length;
      for (const { kind, count, afterMs } of plan) {
        nowMs += afterMs;
        for (let time = 0; time < count; time += 1) {
          if (kind === 'call') {
            calls.push(nowMs);
            quota.called();
            continue;
          }
          const { room } = quota;
          expect(quota.take()).toBe(room > 0);
          if (room <= 0) continue;
          retries.push(nowMs);
          tooMany ||= within(retries) * 10 > within(calls);
        }
      }
      expect(tooMany).toBe(false);
    }),
    { numRuns: 2_000 },
  );
});

test('in all the time, ten calls are made for each retry', () => {
  fc.assert(
    fc.property(steps, (plan) => {
      let nowMs = 0;
      const quota = createRetryQuota({ elapsed: () => nowMs });
      let calls = 0;
      let retries = 0;
      for (const { kind, count, afterMs } of plan) {
        nowMs += afterMs;
        for (let time = 0; time < count; time += 1) {
          if (kind === 'retry') retries += Number(quota.take());
          else quota.called();
        }
        if (kind === 'call') calls += count;
        expect(retries * 10).toBeLessThanOrEqual(calls);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('a steady load has as many retries as a tenth of its calls, and an idle minute leaves nothing over', () => {
  let nowMs = 0;
  const quota = createRetryQuota({ elapsed: () => nowMs });
  let retries = 0;
  for (let call = 0; call < 6_000; call += 1) {
    nowMs += 20;
    quota.called();
    if (call >= 3_100) retries += Number(quota.take());
  }
  // Of 3,000 calls a minute, as far as they are counted to the second.
  expect(retries).toBeGreaterThan(290);
  nowMs += 61_000;
  expect(quota.room).toBe(0);
});
