import { newLedgerState } from './ledger-state.ts';
import type { LedgerRules, LedgerState } from './ledger-state.ts';

/** The states of all callers of a day: those in use as they are, the others packed, which takes a tenth of the room. */
export interface RestingStates {
  get(apiKey: string): LedgerState | undefined;
  set(apiKey: string, state: LedgerState): void;
  /** Forgets those of whose calls no window can hold any. */
  forget(): void;
}

/** States in use at most; the one used longest ago is packed for the next. */
const MOST_IN_USE = 1_000;
/** A day, and the slots around it (ledger-state.ts). */
const FORGOTTEN_AFTER_MS = 26 * 3_600_000;

export function createRestingStates(rules: LedgerRules, now: () => number): RestingStates {
  /** In the order of their use. */
  const inUse = new Map<string, LedgerState>();
  const packed = new Map<string, { readonly text: string; readonly atMs: number }>();
  return {
    get(apiKey) {
      const state = inUse.get(apiKey) ?? unpacked(apiKey);
      if (state) use(apiKey, state);
      return state;
    },
    set: use,
    forget() {
      const longAgoMs = now() - FORGOTTEN_AFTER_MS;
      for (const [apiKey, { atMs }] of packed) {
        // They stand in the order in which they were packed.
        if (atMs >= longAgoMs) return;
        packed.delete(apiKey);
      }
    },
  };

  function use(apiKey: string, state: LedgerState): void {
    inUse.delete(apiKey);
    inUse.set(apiKey, state);
    packed.delete(apiKey);
    for (const [oldest, resting] of inUse) {
      if (inUse.size <= MOST_IN_USE) break;
      inUse.delete(oldest);
      packed.set(oldest, { text: pack(resting), atMs: now() });
    }
  }

  function unpacked(apiKey: string): LedgerState | undefined {
    const found = packed.get(apiKey);
    return found && unpack(found.text, newLedgerState('', rules));
  }
}

/** Without the names, which are the same for all, and its windows likewise. */
function pack(state: LedgerState): string {
  const { minute, day, ...rest } = state;
  return JSON.stringify([fieldsOf(minute), fieldsOf(day), fieldsOf(rest)]);
}

/** @param blank any state: it says which names there are. */
function unpack(text: string, { minute, day, ...rest }: LedgerState): LedgerState {
  const [minuteFields, dayFields, restFields] = JSON.parse(text) as [unknown[], unknown[], unknown[]];
  return {
    ...named(rest, restFields),
    minute: named(minute, minuteFields),
    day: named(day, dayFields),
  };
}

function fieldsOf(value: object): unknown[] {
  return Object.keys(value)
    .toSorted()
    .map((name) => value[name as never]);
}

function named<T extends object>(like: T, fields: readonly unknown[]): T {
  const names = Object.keys(like).toSorted();
  return Object.fromEntries(names.map((name, index) => [name, fields[index]])) as T;
}
