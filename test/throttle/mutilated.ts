import fc from 'fast-check';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { LedgerRules, LedgerState } from '../../src/throttle/ledger-state.ts';
import type { Report } from '../../src/throttle/ledger.ts';

/** A state that was used, of which both windows were told of, a call is under way and another was refused. */
export function usedState(rules: LedgerRules, nowMs: number): LedgerState {
  const state = newLedgerState('of before', rules);
  const { perMinute, perDay } = rules.plan;
  const inMinute = { window: 'minute', limit: perMinute, resetInMs: 30_000, resetId: nowMs + 30_000 } as const;
  const inDay = { window: 'day', limit: perDay, resetInMs: 3_600_000, resetId: nowMs + 3_600_000 } as const;
  for (let call = 0; call < 4; call += 1) {
    const { grants } = exchange(state, { reports: [], wanted: call === 3 ? 2 : 1 }, rules, nowMs + call);
    const reports = grants.slice(0, 1).map((grant): Report => {
      const readings = [inMinute, inDay].map((window) => {
        return { ...window, remaining: window.limit - call - 1, otherLimit: undefined };
      });
      return { kind: 'answered', grant, readings };
    });
    exchange(state, { reports, wanted: 0 }, rules, nowMs + call);
  }
  return state;
}

/** What may stand where a field was; `undefined` for nothing. */
const ODD_VALUES: readonly unknown[] = [
  undefined,
  null,
  true,
  false,
  '',
  'told',
  'x',
  -1,
  0,
  0.5,
  1e300,
  -1e300,
  1e17,
  [],
  [1, 2],
  {},
  { x: 1 },
  { '7': 'x' },
  { '7': -1 },
  { '7': 1e300 },
  { '7': null },
  { nan: 1 },
  { '0x1': 1 },
  { ['9'.repeat(400)]: 1 },
];

/** How a state is mutilated: its fields as paths, each with what is to stand there. */
export const mutilations = (state: object) =>
  fc.array(fc.tuple(fc.constantFrom(...pathsOf(state)), fc.constantFrom(...ODD_VALUES)), {
    minLength: 1,
    maxLength: 3,
  });

export function mutilated(state: object, changes: readonly (readonly [path: string, value: unknown])[]): string {
  let text = JSON.stringify(state);
  for (const [path, value] of changes) {
    const copy = JSON.parse(text) as Record<string, any>;
    const [first = '', second] = path.split('.');
    if (second === undefined) copy[first] = value;
    else if (typeof copy[first] === 'object' && copy[first] !== null) copy[first][second] = value;
    text = JSON.stringify(copy);
  }
  return text;
}

/** Of all fields, and of those in its windows. */
export function pathsOf(state: object): string[] {
  return Object.entries(state).flatMap(([name, value]) => [
    name,
    ...(name === 'minute' || name === 'day' ? Object.keys(value as object).map((inner) => `${name}.${inner}`) : []),
  ]);
}
