import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createUsageMeter, usageJson } from '../../src/caller/usage.ts';
import type { Usage } from '../../src/caller/usage.ts';

test('an answer grows older while the request waits for its others', () => {
  let nowMs = 5_000;
  const meter = createUsageMeter({ elapsed: () => nowMs });
  expect(meter.usage().oldestAgeMs).toBeUndefined();
  meter.answered(4_950, undefined, 'FRESH');
  expect(meter.usage().oldestAgeMs).toBe(50);
  nowMs += 3_000;
  meter.answered(nowMs, undefined, undefined);
  expect(meter.usage().oldestAgeMs).toBe(3_050);
});

test('as JSON it is what JSON.stringify makes of it', () => {
  const usage = fc.record<Usage>({
    upstreamCalls: fc.nat(),
    servedWithoutCall: fc.nat(),
    oldestAgeMs: fc.option(fc.nat(), { nil: undefined }),
    staleReason: fc.constantFrom(undefined, 'GATE_CLOSED', 'SAVING_CALLS', 'UPSTREAM_FAILED'),
  });
  fc.assert(
    fc.property(usage, (one) => {
      expect(usageJson(one)).toBe(JSON.stringify(one));
    }),
  );
});
