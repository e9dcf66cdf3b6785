import { expect, test } from 'vitest';
import { createUsageMeter } from '../../src/caller/usage.ts';

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
