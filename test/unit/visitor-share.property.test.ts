import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  allowance,
  countCalls,
  dropFree,
  isWithinShare,
  newVisitorCalls,
  shareWaitMs,
} from '../../src/quota/account/visitor-share.ts';
import type { VisitorCalls } from '../../src/quota/account/visitor-share.ts';
import { chooseSeed } from '../support/seed.ts';

const WINDOWS = { minute: 60_000, day: 86_400_000 } as const;
type Name = keyof typeof WINDOWS;

const NAMES = ['minute', 'day'] as const;

interface HistoricCall {
  readonly atMs: number;
  readonly visitor: string;
  readonly replica: number;
}

/** A key whose calls are all made by visitors who have a share. */
class SharedKey {
  nowMs = 1_000_000_000;
  readonly limits: Readonly<Record<Name, number>>;
  readonly #replicas: number;
  readonly #all = newVisitorCalls();
  readonly #visitors = new Map<string, VisitorCalls>();
  readonly #history: HistoricCall[] = [];

  constructor(limits: Readonly<Record<Name, number>>, replicas: number) {
    this.limits = limits;
    this.#replicas = replicas;
  }

  callsOf(visitor: string, replica: number): VisitorCalls {
    const name = `${visitor} at ${replica}`;
    const calls = this.#visitors.get(name) ?? newVisitorCalls();
    this.#visitors.set(name, calls);
    dropFree(calls, this.nowMs);
    return calls;
  }

  remaining(name: Name): number {
    dropFree(this.#all, this.nowMs);
    return this.limits[name] - this.#all[name].total;
  }

  /** Makes a call where the key has a permit and the visitor a share. */
  call(visitor: string, replica: number): boolean {
    const calls = this.callsOf(visitor, replica);
    const isAllowed = NAMES.every((name) => {
      const remaining = this.remaining(name);
      return remaining > 0 && isWithinShare(calls[name].total, { remaining, replicas: this.#replicas });
    });
    if (!isAllowed) return false;
    countCalls(calls, this.nowMs);
    countCalls(this.#all, this.nowMs);
    this.#history.push({ atMs: this.nowMs, visitor, replica });
    return true;
  }

  waitMs(visitor: string, replica: number, name: Name): number {
    const { slots, counts } = this.#all[name];
    const slotMs = { minute: 1_000, day: 600_000 }[name];
    const keyWaitMs = (needed: number) => {
      let left = this.remaining(name);
      if (left > needed) return 0;
      for (const [index, slot] of slots.entries()) {
        left += counts[index] ?? 0;
        if (left > needed) return slot * slotMs - this.nowMs;
      }
      return Infinity;
    };
    const calls = this.callsOf(visitor, replica);
    return shareWaitMs(calls, name, this.nowMs, { more: 1, replicas: this.#replicas, keyWaitMs });
  }

  /** By the history alone. */
  usedInLast(spanMs: number, isCounted: (call: HistoricCall) => boolean): number {
    return this.#history.filter((call) => call.atMs > this.nowMs - spanMs && isCounted(call)).length;
  }

  /** Whether the last call of all was made by this visitor, now. */
  isLast(visitor: string, replica: number): boolean {
    const last = this.#history.at(-1);
    return last?.atMs === this.nowMs && last.visitor === visitor && last.replica === replica;
  }
}

interface Step {
  readonly passMs: number;
  readonly visitor: string;
  readonly replica: number;
  readonly calls: number;
}

const limits = fc.record({ minute: fc.integer({ min: 1, max: 40 }), day: fc.integer({ min: 1, max: 120 }) });
const replicas = fc.integer({ min: 1, max: 3 });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    passMs: fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: 0, max: 20_000 }), fc.constant(14_400_000)),
    visitor: fc.constantFrom('a', 'b', 'c', 'd'),
    replica: fc.nat(2),
    calls: fc.integer({ min: 1, max: 30 }),
  }),
  { maxLength: 60 },
);

/** Visitors make calls; after those of each step, the key is as expected. */
function checkEachStep(check: (key: SharedKey, step: Step, count: number) => void): void {
  const property = fc.property(limits, replicas, steps, (ofKey, count, given) => {
    const key = new SharedKey(ofKey, count);
    for (const step of given) {
      const replica = step.replica % count;
      key.nowMs += step.passMs;
      for (let call = 0; call < step.calls; call += 1) key.call(step.visitor, replica);
      check(key, { ...step, replica }, count);
    }
  });
  fc.assert(property, { seed: chooseSeed(), numRuns: 300 });
}

describe('a visitor', () => {
  test('has never used more of a window than it left, of what one replica sees of it', () => {
    checkEachStep((key, { visitor, replica }, count) => {
      for (const name of NAMES) {
        const used = key.usedInLast(WINDOWS[name], (call) => call.visitor === visitor && call.replica === replica);
        const all = key.usedInLast(WINDOWS[name], () => true);
        // Its last call was made where those before it were no more than what was left.
        const isOver = used > 1 && (used - 1) * count > key.limits[name] - all;
        expect(isOver && key.isLast(visitor, replica), `${used} calls of a ${name}`).toBe(false);
      }
    });
  });

  test('makes a first call wherever the windows have one left', () => {
    let number = 0;
    checkEachStep((key) => {
      const isLeft = NAMES.every((name) => key.remaining(name) > 0);
      expect(key.call(`new ${(number += 1)}`, 0)).toBe(isLeft);
    });
  });

  test('makes as many calls as its allowance says, and not one more', () => {
    checkEachStep((key, { visitor, replica }, count) => {
      const allowed = NAMES.map((name) =>
        allowance(key.callsOf(visitor, replica)[name].total, { remaining: key.remaining(name), replicas: count }),
      );
      let made = 0;
      while (key.call(visitor, replica)) made += 1;
      expect(made).toBe(Math.min(...allowed));
    });
  });

  test('may call again after the time that it is told, and not a millisecond sooner', () => {
    checkEachStep((key, { visitor, replica }) => {
      while (key.call(visitor, replica));
      const waitMs = Math.max(...NAMES.map((name) => key.waitMs(visitor, replica, name)));
      key.nowMs += waitMs - 1;
      const isSooner = key.call(visitor, replica);
      key.nowMs += 1;
      expect({ isSooner, isThen: key.call(visitor, replica) }).toEqual({ isSooner: false, isThen: true });
    });
  });

  test('has what it had where a call was not sent', () => {
    const calls = newVisitorCalls();
    countCalls(calls, 5_000);
    countCalls(calls, 70_000);
    countCalls(calls, 5_000, -1);
    dropFree(calls, 66_000);
    expect([calls.minute.total, calls.day.total]).toEqual([1, 1]);
  });
});

test.each([1, 2, 3, 5, 9])('%i greedy visitors get equal shares, and the next one finds as much', (count) => {
  const key = new SharedKey({ minute: 300, day: 10_000 }, 1);
  // Each starts as another one has taken half: their shares are equal after some minutes.
  for (let second = 0; second < 600; second += 1) {
    key.nowMs += 1_000;
    for (let turn = 0; turn < 10; turn += 1) {
      for (let visitor = 0; visitor < count; visitor += 1) key.call(`greedy ${visitor}`, 0);
    }
  }
  const share = 300 / (count + 1);
  for (let visitor = 0; visitor < count; visitor += 1) {
    const used = key.callsOf(`greedy ${visitor}`, 0).minute.total;
    expect(Math.abs(used - share), `greedy ${visitor} has ${used}`).toBeLessThanOrEqual(share * 0.1 + 1);
  }
  expect(Math.abs(key.remaining('minute') - share)).toBeLessThanOrEqual(share * 0.1 + count);
  const before = key.remaining('minute');
  let found = 0;
  while (key.call('next', 0)) found += 1;
  expect(found).toBe(Math.ceil(before / 2));
});
