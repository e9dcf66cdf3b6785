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

  /** Without what a new state would have as well. */
  function pack(state: LedgerState): string {
    const blank = Object.entries(newLedgerState('', rules)) as [keyof LedgerState, unknown][];
    const same = new Set(blank.filter(([name, value]) => JSON.stringify(state[name]) === JSON.stringify(value)));
    const changed = blank.filter((entry) => !same.has(entry)).map(([name]) => [name, state[name]]);
    return JSON.stringify(Object.fromEntries(changed));
  }

  function unpacked(apiKey: string): LedgerState | undefined {
    const found = packed.get(apiKey);
    return found && { ...newLedgerState('', rules), ...(JSON.parse(found.text) as Partial<LedgerState>) };
  }
}
