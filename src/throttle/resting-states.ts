import { newLedgerState } from './ledger-state.ts';
import type { LedgerRules, LedgerState } from './ledger-state.ts';

/** The states of all callers of a day: those in use as they are, the others packed, which takes a tenth of the room. */
export interface RestingStates {
  get(apiKey: string): LedgerState | undefined;
  set(apiKey: string, state: LedgerState): void;
  /** Forgets those of whose calls no window can hold any, and that are not paused. */
  forget(): void;
}

/** States in use at most; the one used longest ago is packed for the next. */
const MOST_IN_USE = 1_000;
/** A day, and the slots around it (ledger-state.ts). */
const FORGOTTEN_AFTER_MS = 26 * 3_600_000;

export function createRestingStates(rules: LedgerRules, now: () => number): RestingStates {
  /** In the order of their use. */
  const inUse = new Map<string, LedgerState>();
  const packed = new Map<string, { readonly text: string; readonly untilMs: number }>();
  const blank = newLedgerState('', rules);
  return {
    get(apiKey) {
      const state = inUse.get(apiKey) ?? unpacked(apiKey);
      if (state) use(apiKey, state);
      return state;
    },
    set: use,
    forget() {
      for (const [apiKey, { untilMs }] of packed) if (untilMs < now()) packed.delete(apiKey);
    },
  };

  function use(apiKey: string, state: LedgerState): void {
    inUse.delete(apiKey);
    inUse.set(apiKey, state);
    packed.delete(apiKey);
    for (const [oldest, resting] of inUse) {
      if (inUse.size <= MOST_IN_USE) break;
      inUse.delete(oldest);
      // A pause may be longer than any window.
      const untilMs = Math.max(now(), resting.pausedUntilMs) + FORGOTTEN_AFTER_MS;
      packed.set(oldest, { text: pack(resting, blank), untilMs });
    }
  }

  function unpacked(apiKey: string): LedgerState | undefined {
    const found = packed.get(apiKey);
    return found && unpack(found.text, blank);
  }
}

/**
 * Without the names, which are the same for all, and its windows likewise.
 *
 * @param blank any state: it says which names there are, and in which order they stand.
 */
function pack(state: LedgerState, blank: LedgerState): string {
  return JSON.stringify([
    fieldsOf(state.minute, blank.minute),
    fieldsOf(state.day, blank.day),
    fieldsOf(state, withoutWindows(blank)),
  ]);
}

function unpack(text: string, blank: LedgerState): LedgerState {
  const [minute, day, rest] = JSON.parse(text) as [unknown[], unknown[], unknown[]];
  return {
    ...named(withoutWindows(blank), rest),
    minute: named(blank.minute, minute),
    day: named(blank.day, day),
  };
}

function withoutWindows({ minute: _minute, day: _day, ...rest }: LedgerState): Omit<LedgerState, 'day' | 'minute'> {
  return rest;
}

function fieldsOf<T extends object>(value: T, like: T): unknown[] {
  return Object.keys(like).map((name) => value[name as keyof T]);
}

function named<T extends object>(like: T, fields: readonly unknown[]): T {
  return Object.fromEntries(Object.keys(like).map((name, index) => [name, fields[index]])) as T;
}
