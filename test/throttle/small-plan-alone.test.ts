import fc from 'fast-check';
import { expect, test } from 'vitest';
import { exchange, newStateAlone } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules, LedgerState } from '../../src/throttle/ledger-state.ts';
import type { Grant, Report } from '../../src/throttle/ledger.ts';

// A plan that allows fewer calls than there may be replicas, while Redis is away. A share of nothing once came with a wait of
// nothing, and a process that started then did nothing any more but ask for it.

const NOW = Date.UTC(2026, 10, 21, 12);

function rulesOf(perMinute: number, perDay: number): LedgerRules {
  return { plan: { perMinute, perDay, known: true }, probeMs: 5_000 };
}

/** What a replica that knows nothing gets within so long, whose calls are answered without a word of the plan. */
function spend(state: LedgerState, rules: LedgerRules, forMs: number): number {
  let spent = 0;
  let reports: Report[] = [];
  for (let nowMs = NOW; nowMs < NOW + forMs;) {
    const { grants, closed, waitMs } = exchange(state, { reports, wanted: 5 }, rules, nowMs);
    expect(closed === undefined || waitMs > 0).toBe(true);
    spent += grants.length;
    reports = grants.map((grant: Grant) => ({ kind: 'answered', grant, readings: [] }));
    nowMs += grants.length > 0 ? 1 : waitMs;
  }
  return spent;
}

test('each replica takes one call of a window that has fewer than there may be replicas', () => {
  const alone = (rules: LedgerRules) => newStateAlone('alone', rules, undefined, { replicas: 50, nowMs: NOW });
  const smallDay = rulesOf(10, 40);
  expect(spend(alone(smallDay), smallDay, 23 * 3_600_000)).toBe(1);
  const smallMinute = rulesOf(30, 5_000);
  expect(spend(alone(smallMinute), smallMinute, 60_000)).toBe(1);
  expect(spend(alone(smallMinute), smallMinute, 600_000)).toBeGreaterThan(5);
});

test('nothing is ever closed for no time at all, however few calls there are for however many replicas', () => {
  const count = fc.oneof(fc.nat(3), fc.nat(200));
  const given = fc.record({ perMinute: count, perDay: count, replicas: fc.integer({ min: 1, max: 60 }) });
  fc.assert(
    fc.property(given, ({ perMinute, perDay, replicas }) => {
      const rules = rulesOf(perMinute, perDay);
      spend(newStateAlone('alone', rules, undefined, { replicas, nowMs: NOW }), rules, 300_000);
    }),
    { numRuns: 100 },
  );
});
