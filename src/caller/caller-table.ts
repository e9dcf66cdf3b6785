import type { Clock } from '../clock.ts';

/** What is known of callers in memory, bounded in number and in time. */
export interface CallerTable<T extends TabledCaller> {
  get(apiKey: string, make: () => T): T;
  /** The one asked for last first. */
  all(): T[];
  count(of: (caller: T) => boolean): number;
  close(): void;
}

export interface TabledCaller {
  /** Whether it waits for something, so that it must not be forgotten now: a second one would not know of its writes. */
  isBusy(): boolean;
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
  const newcomers = createSegment<T>();
  const regulars = createSegment<T>();
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
    count(of) {
      let count = 0;
      for (const segment of [newcomers, regulars])
        for (const { caller } of segment.values()) if (of(caller)) count += 1;
      return count;
    },
    close: () => clearInterval(looking),
  };

  function put(segment: Segment<T>, most: number, apiKey: string, caller: T): void {
    segment.delete(apiKey);
    segment.add(apiKey, { caller, usedAtMs: elapsed() });
    forget(segment, () => segment.size() > most, apiKey);
  }
}

interface Entry<T> {
  readonly caller: T;
  readonly usedAtMs: number;
}

/** Callers in the order of their use. */
interface Segment<T> {
  get(apiKey: string): Entry<T> | undefined;
  /** One that is not there. */
  add(apiKey: string, entry: Entry<T>): void;
  delete(apiKey: string): void;
  keys(): Iterable<string>;
  values(): Entry<T>[];
  size(): number;
}

/**
 * A Map that is added to and deleted from makes itself a new table again and again, and each old one holds what was in it
 * until the collector goes through the whole heap; so callers in it would outlive their time, and be moved to where only that
 * finds them. Numbers do not matter.
 */
function createSegment<T>(): Segment<T> {
  const places = new Map<string, number>();
  const entries: (Entry<T> | undefined)[] = [];
  const free: number[] = [];
  return {
    get(apiKey) {
      const place = places.get(apiKey);
      return place === undefined ? undefined : entries[place];
    },
    add(apiKey, entry) {
      const place = free.pop() ?? entries.length;
      places.set(apiKey, place);
      entries[place] = entry;
    },
    delete(apiKey) {
      const place = places.get(apiKey);
      if (place === undefined) return;
      places.delete(apiKey);
      entries[place] = undefined;
      free.push(place);
    },
    keys: () => places.keys(),
    values: () => entries.filter((entry) => entry !== undefined),
    size: () => places.size,
  };
}

/**
 * From the one used longest ago on, as long as there is a reason to.
 *
 * @param asked the one that is being asked for: it is about to be busy.
 */
function forget<T extends TabledCaller>(segment: Segment<T>, due: (entry: Entry<T>) => boolean, asked?: string): void {
  for (const apiKey of segment.keys()) {
    const entry = segment.get(apiKey);
    if (!entry || !due(entry)) return;
    if (apiKey === asked || entry.caller.isBusy()) continue;
    segment.delete(apiKey);
    entry.caller.leave();
  }
}
