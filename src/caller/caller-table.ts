import type { Clock } from '../clock.ts';

/** What is known of callers in memory, bounded in number and in time. */
export interface CallerTable<T extends TabledCaller> {
  get(apiKey: string, make: () => T): T;
  /** The one asked for last first. */
  all(): T[];
  close(): void;
}

export interface TabledCaller {
  /** Whether it waits for something, so that it must not be forgotten now: a second one would not know of its writes. */
  readonly busy: boolean;
  /** It is forgotten. */
  leave(): void;
}

/** Callers seen once, and those seen again: however many strangers come, they do not push out who comes back. */
const MOST_NEWCOMERS = 1_000;
const MOST_REGULARS = 20_000;
const LOOK_EVERY_MS = 60_000;
/** The order of use is that of seconds: who asks a thousand times a second is not moved a thousand times. */
const MOVED_EVERY_MS = 1_000;

/** @param idleMs a caller that nobody has asked for in so long is forgotten. */
export function createCallerTable<T extends TabledCaller>(
  { elapsed }: Pick<Clock, 'elapsed'>,
  idleMs: number,
): CallerTable<T> {
  const newcomers: Segment<T> = new Map();
  const regulars: Segment<T> = new Map();
  const looking = setInterval(() => {
    for (const segment of [newcomers, regulars]) forget(segment, (entry) => elapsed() - entry.usedAtMs > idleMs);
  }, LOOK_EVERY_MS).unref();

  return {
    get(apiKey, make) {
      const regular = regulars.get(apiKey);
      if (regular && elapsed() - regular.usedAtMs < MOVED_EVERY_MS) return regular.caller;
      const known = regular ?? newcomers.get(apiKey);
      if (known) {
        newcomers.delete(apiKey);
        put(regulars, MOST_REGULARS, apiKey, known.caller);
        return known.caller;
      }
      const caller = make();
      put(newcomers, MOST_NEWCOMERS, apiKey, caller);
      return caller;
    },
    all: () =>
      [...newcomers.values(), ...regulars.values()]
        .toSorted((one, other) => other.usedAtMs - one.usedAtMs)
        .map(({ caller }) => caller),
    close: () => clearInterval(looking),
  };

  function put(segment: Segment<T>, most: number, apiKey: string, caller: T): void {
    segment.delete(apiKey);
    segment.set(apiKey, { caller, usedAtMs: elapsed() });
    forget(segment, () => segment.size > most);
  }
}

/** In the order of their use. */
type Segment<T> = Map<string, { readonly caller: T; readonly usedAtMs: number }>;

/** From the one used longest ago on, as long as there is a reason to. */
function forget<T extends TabledCaller>(segment: Segment<T>, due: (entry: { readonly usedAtMs: number }) => boolean) {
  for (const [apiKey, entry] of segment) {
    if (!due(entry)) return;
    if (entry.caller.busy) continue;
    segment.delete(apiKey);
    entry.caller.leave();
  }
}
