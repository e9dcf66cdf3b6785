import { expect, test } from 'vitest';
import { agedExchange } from '../../src/throttle/aged-exchange.ts';
import type { Grant, Memory, Reading, Report } from '../../src/throttle/ledger.ts';

const GRANT: Grant = { generation: 'one', start: 1, countedBefore: 0, grantedAtMs: 0, probe: true };
const reading = (resetInMs: number): Reading => {
  return { window: 'minute', limit: 60, remaining: 9, resetInMs, resetId: 7, otherLimit: undefined };
};
const aged = (ageMs: number, report: Report) => agedExchange({ reports: [report], wanted: 3 }, ageMs).reports[0];

test('a window that was told of resets as much sooner', () => {
  const report = aged(5_000, { kind: 'answered', grant: GRANT, readings: [reading(20_000)] });
  expect(report).toMatchObject({ grant: GRANT, readings: [{ remaining: 9, resetInMs: 15_000, agoMs: 5_000 }] });
});

// With the guard of a second, a reset that has just come still holds.
test('a window that is over is not told of, and its probe has found out nothing', () => {
  const answered = { kind: 'answered', grant: GRANT, readings: [reading(20_000)] } as const;
  expect(aged(20_500, answered)).toMatchObject({ grant: { probe: true }, readings: [{ resetInMs: -500 }] });
  expect(aged(21_000, answered)).toMatchObject({ grant: { probe: false }, readings: [] });
  // Where headers tell of nothing, that is what it has found out.
  expect(aged(21_000, { ...answered, readings: [] })).toMatchObject({ grant: { probe: true } });
});

// Or the ledger would wait for it as long as a call may take, and nobody could ask meanwhile.
test('of a probe that has found out nothing it is told that it is lost', () => {
  const answered: Report = { kind: 'answered', grant: GRANT, readings: [reading(20_000)] };
  const kinds = (ageMs: number, report: Report) =>
    agedExchange({ reports: [report], wanted: 3 }, ageMs).reports.map(({ kind }) => kind);
  expect(kinds(21_000, answered)).toEqual(['answered', 'lost']);
  expect(kinds(20_500, answered)).toEqual(['answered']);
  expect(kinds(21_000, { ...answered, grant: { ...GRANT, probe: false } })).toEqual(['answered']);
  expect(kinds(21_000, { kind: 'returned', grant: GRANT })).toEqual(['returned']);
});

test('a Retry-After is over as much sooner', () => {
  const refused = (retryAfterMs: number): Report => {
    return { kind: 'refused', grant: GRANT, readings: [], refusal: { retryAfterMs, ban: false, jitter: 0 } };
  };
  expect(aged(5_000, refused(20_000))).toMatchObject({ refusal: { retryAfterMs: 15_000 } });
  expect(aged(5_000, refused(3_000))).toMatchObject({ refusal: { retryAfterMs: 0 } });
});

test('what is remembered lies as far ahead as it does by now, and of a day that is over nothing is spent', () => {
  const memory: Memory = {
    calls: 1,
    underWay: 0,
    minuteUsed: 4,
    minuteTold: { remaining: 0, inMs: 8_000, id: 7 },
    dayUsed: 40,
    dayReset: { inMs: 9_000, id: 8 },
    dayFreeInMs: 10_000,
    pausedForMs: 7_000,
    awayForMs: 1_000,
    refusedLately: true,
  };
  expect(aged(5_000, { kind: 'adopted', ...memory })).toEqual({
    kind: 'adopted',
    ...memory,
    minuteTold: { remaining: 0, inMs: 3_000, id: 7 },
    dayReset: { inMs: 4_000, id: 8 },
    dayFreeInMs: 5_000,
    pausedForMs: 2_000,
    awayForMs: 6_000,
  });
  const { minuteTold: _minute, dayReset: _day, ...rest } = memory;
  expect(aged(9_000, { kind: 'adopted', ...memory })).toEqual({
    kind: 'adopted',
    ...rest,
    dayUsed: 0,
    dayFreeInMs: 1_000,
    pausedForMs: 0,
    awayForMs: 10_000,
  });
});
