import { expect, test } from 'vitest';
import { checkPlan, usedShare } from './check-plan.ts';
import type { PlanRules } from './check-plan.ts';
import { createFaults } from './faults.ts';
import type { FaultKind } from './faults.ts';
import type { LoggedCall } from './pet-api/pet-api.ts';

/** Rules for a history with one fault. */
function harmed(kind: FaultKind, fromMs: number, untilMs: number): PlanRules {
  let nowMs = fromMs;
  const faults = createFaults(() => nowMs);
  const over = faults.begin(kind);
  nowMs = untilMs;
  over();
  return { faults };
}

const call = (atMs: number, more: Partial<LoggedCall> = {}): LoggedCall => ({
  key: 'key',
  method: 'POST',
  path: '/pets',
  kind: 'create',
  target: 'create',
  body: '',
  headers: {},
  name: undefined,
  number: 1,
  status: 201,
  sentAtMs: atMs - 10,
  atMs,
  answeredAtMs: atMs + 10,
  over: undefined,
  isBanned: false,
  retryAfterMs: undefined,
  ...more,
});
const over = (atMs: number, more: Partial<LoggedCall> = {}) => call(atMs, { status: 429, over: 'minute', ...more });
const look = (log: readonly LoggedCall[], rules: PlanRules = {}) =>
  checkPlan(log, rules).flatMap(({ problems }) => problems);

test('plans that are exceeded are found, beyond the incidents that are allowed', () => {
  const log = [over(1_000), over(1_015), over(1_040, { over: 'day' })];
  expect(look(log)).toHaveLength(3);
  expect(look(log, { incidents: 1 })).toEqual(["the POST of key at 1970-01-01T00:00:01.040Z went over the plan's day"]);
  expect(look(log, { incidents: 2 })).toEqual([]);
});

test('plans may be exceeded once a key, each time that Redis was harmed', () => {
  const rules = harmed('redis', 20_000, 25_000);
  const together = [over(50_000), over(50_005)];
  expect(look(together, rules)).toEqual([]);
  expect(look([...together, over(50_000, { key: 'other' })], rules)).toEqual([]);
  expect(look([...together, over(60_000)], rules)).toHaveLength(1);
  expect(look([over(101_000)], rules)).toHaveLength(1);
});

test('plans have pauses, in which a call is found unless it was in flight, of another key, or no response came', () => {
  const pause = call(1_000, { status: 429, retryAfterMs: 5_000 });
  expect(look([pause, call(1_015), call(2_000, { key: 'other' }), call(6_000)])).toEqual([]);
  expect(look([pause, call(1_030), call(5_999)])).toHaveLength(2);
  expect(look([pause, call(1_500)], { inFlightMs: 500 })).toEqual([]);
  expect(look([pause, call(1_030)], harmed('upstream', 1_005, 1_200))).toEqual([]);
});

test('plans have one probe at a time after a pause, and a second one is found until a probe is served', () => {
  const pause = call(1_000, { status: 429, retryAfterMs: 5_000 });
  const slow = (atMs: number, more: Partial<LoggedCall> = {}) => call(atMs, { answeredAtMs: atMs + 2_000, ...more });
  expect(look([pause, slow(7_000), call(9_011), call(9_012)])).toEqual([]);
  expect(look([pause, slow(7_000), call(8_000)])).toEqual([
    'the POST of key at 1970-01-01T00:00:08.000Z was sent beside the probe of the pause until 1970-01-01T00:00:06.000Z',
  ]);
  expect(look([pause, slow(7_000), slow(7_000, { key: 'other' })])).toEqual([]);
  expect(look([pause, slow(7_000, { status: 503 }), slow(15_000), call(16_000)])).toHaveLength(1);
  expect(look([pause, slow(7_000), call(8_000)], harmed('redis', 7_500, 7_600))).toEqual([]);
});

test('plans have probes without a response, beside which another is found until the timeout', () => {
  const log = (atMs: number) => [
    call(1_000, { status: 429, retryAfterMs: 5_000 }),
    call(7_000, { answeredAtMs: undefined }),
    call(atMs),
  ];
  expect(look(log(9_000))).toHaveLength(1);
  expect(look(log(12_500))).toEqual([]);
  expect(look(log(9_000), { upstreamTimeoutMs: 1_500 })).toEqual([]);
});

test('plans have bans, which are found', () => {
  expect(look([call(1_000, { status: 403 })])).toEqual([]);
  expect(look([call(1_000, { status: 403, isBanned: true })])).toHaveLength(1);
});

test('plans are used wholly where each window is used as it opens, and less where it waits', () => {
  const burst = (atMs: number) => Array.from({ length: 10 }, (_, index) => call(atMs + index));
  expect(usedShare([0, 60_000, 120_000].flatMap(burst), 10)).toBe(1);
  expect(usedShare([0, 75_000, 150_000].flatMap(burst), 10)).toBe(0.8);
});
