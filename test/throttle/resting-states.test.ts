import { expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerState } from '../../src/throttle/ledger-state.ts';
import { createRestingStates } from '../../src/throttle/resting-states.ts';

const rules = { plan: { ...PLANS.free, known: false }, probeMs: 5_000 };
const START_MS = Date.UTC(2026, 10, 21, 12);
const HOUR_MS = 3_600_000;

/** Of so many calls, the first of them a probe that told of the minute. */
function spent(calls: number): LedgerState {
  const state = newLedgerState(`generation ${calls}`, rules);
  const { grants } = exchange(state, { reports: [], wanted: 1 }, rules, START_MS);
  const reading = {
    window: 'minute',
    limit: 60,
    remaining: 59,
    resetInMs: 30_000,
    resetId: 7,
    otherLimit: 1_000,
  } as const;
  const reports = grants.map((grant) => ({ kind: 'answered', grant, readings: [reading] }) as const);
  exchange(state, { reports, wanted: calls - 1 }, rules, START_MS + 40);
  return state;
}

test('a state is the same after it has rested, whatever came in between', () => {
  const states = createRestingStates(rules, () => START_MS);
  for (let key = 1; key <= 5_000; key += 1) states.set(`key ${key}`, spent(1 + (key % 50)));
  for (const key of [1, 49, 2_500, 5_000]) expect(states.get(`key ${key}`)).toEqual(spent(1 + (key % 50)));
  expect(states.get('nobody')).toBeUndefined();
});

test('a state goes on where it was', () => {
  const states = createRestingStates(rules, () => START_MS);
  states.set('a key', spent(3));
  for (let key = 0; key < 2_000; key += 1) states.set(`key ${key}`, spent(1));
  const state = states.get('a key') as LedgerState;
  const { day } = exchange(state, { reports: [], wanted: 2 }, rules, START_MS + 100);
  expect(day.used).toBe(5);
});

test('a state is forgotten once no window can hold any of its calls, and not sooner', () => {
  let nowMs = START_MS;
  const states = createRestingStates(rules, () => nowMs);
  for (let key = 0; key < 2_000; key += 1) states.set(`key ${key}`, spent(1));
  nowMs += 25 * HOUR_MS;
  states.forget();
  expect(states.get('key 0')).toBeDefined();
  for (let key = 0; key < 2_000; key += 1) states.set(`key ${key}`, spent(1));
  nowMs += 27 * HOUR_MS;
  states.forget();
  expect(states.get('key 0')).toBeUndefined();
});

test('a state whose pause outlives every window is not forgotten before it is over', () => {
  let nowMs = START_MS;
  const states = createRestingStates(rules, () => nowMs);
  states.set('paused', { ...spent(1), pausedUntilMs: START_MS + 72 * HOUR_MS });
  for (let key = 0; key < 2_000; key += 1) states.set(`key ${key}`, spent(1));
  nowMs += 71 * HOUR_MS;
  states.forget();
  expect(states.get('key 0')).toBeUndefined();
  expect(states.get('paused')?.pausedUntilMs).toBe(START_MS + 72 * HOUR_MS);
});
