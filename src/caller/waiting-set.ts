import type { Clock } from '../clock.ts';
import type { PetqlError } from '../errors.ts';
import { callKey } from './call.ts';
import type { Call, ListingName } from './call.ts';
import { demandKey } from './demand.ts';
import type { Demand } from './demand.ts';
import type { Freshness } from './freshness.ts';
import type { Knowledge } from './knowledge.ts';
import type { OpenDemand } from './plan-of-calls.ts';
import type { Rest } from './rests.ts';

/** What waits for calls and which calls are under way, of one caller; and which answers who may use. */
export interface WaitingSet<W extends Waiting> {
  readonly open: ReadonlySet<Open<W>>;
  /** In the order in which they were sent. */
  readonly flights: ReadonlySet<Flight>;
  /** The groups that wait for this demand: more than one where a call under way may answer one and not another. */
  waitingFor(demand: Demand): readonly Open<W>[];
  /** Those that this call may answer, all others aside as far as that is quickly told. */
  concernedBy(call: Call): Iterable<Open<W>>;
  /** To the others that wait for this demand, where a call that may answer them may answer the newcomer too. */
  join(demand: Demand, waiter: W): Open<W>;
  leave(one: Open<W>, waiter: W): void;
  /** A call is sent. */
  depart(call: Call, more: Pick<Flight, 'isRetry' | 'sharedWrites'>): Flight;
  /** It is over. */
  arrive(flight: Flight): void;
  /** A write is over: what was read before it is of no use to whoever comes after it. */
  wrote(): void;
  /** Whether no write was over since it was sent, so that its answer may be kept. */
  isCurrent(flight: Flight): boolean;
  /** Whether its answer may be used for this one. */
  accepts(one: Open<W>, flight: Flight): boolean;
  /** Notes which calls under way each may use, as a plan of calls wants to know it. */
  noteJoins(): void;
  noteJoinsOf(one: Open<W>): void;
}

/** Whoever waits for a demand, as far as this concerns which answers do. */
export interface Waiting {
  readonly freshness: Freshness;
  readonly deadlineMs: number;
}

/** A demand, and all that wait for the same answer to it. */
export interface Open<W extends Waiting> extends OpenDemand {
  readonly seen: Set<ListingName>;
  /** What of that was known when the first one came. */
  readonly known: ReadonlySet<ListingName>;
  joins: ReadonlySet<string>;
  metNoRoute: boolean;
  readonly waiters: Set<W>;
  /** Only calls that were sent after this one may answer it, by their numbers … */
  since: number;
  /** … and after so many writes. */
  readonly writes: number;
  /** Why a listing that might have shown it did not come. */
  failure: PetqlError | undefined;
  /** How many calls for it have failed in a way that may pass, and the error of the last one. */
  failures: number;
  passing: PetqlError | undefined;
  /** Whether somebody has come since then, so that the next call for it is no mere retry. */
  fresh: boolean;
  /** The pause before a retry: nothing is asked for it until this is over. */
  rest: Rest | undefined;
}

/** A call under way. */
export interface Flight {
  readonly call: Call;
  readonly key: string;
  /** Calls are numbered in the order in which they are sent. */
  readonly number: number;
  readonly isRetry: boolean;
  readonly sentAtMs: number;
  /** How many writes were over when it was sent: after another one, nobody who comes may use its answer. */
  readonly writes: number;
  /** The same over all replicas, as the listings that they share are marked. */
  readonly sharedWrites: string;
}

export function createWaitingSet<W extends Waiting>(
  clock: Pick<Clock, 'elapsed'>,
  knowledge: Pick<Knowledge, 'lastShown' | 'listed'>,
): WaitingSet<W> {
  const open = new Set<Open<W>>();
  const byDemand = new Map<string, Open<W>[]>();
  const flights = new Set<Flight>();
  let sent = 0;
  let writes = 0;

  return {
    open,
    flights,
    waitingFor,
    concernedBy: (call) => (call.kind === 'get' ? waitingFor({ kind: 'animal', id: call.id }) : open),
    join,
    leave,
    depart(call, more) {
      sent += 1;
      const flight = { call, key: callKey(call), number: sent, sentAtMs: clock.elapsed(), writes, ...more };
      flights.add(flight);
      return flight;
    },
    arrive: (flight) => void flights.delete(flight),
    wrote() {
      writes += 1;
    },
    isCurrent: (flight) => flight.writes === writes,
    accepts,
    noteJoins() {
      const keys = new Set<string>();
      for (const { key } of flights) keys.add(key);
      // Whoever accepts the one that was sent first accepts all of them.
      const [first] = flights;
      for (const one of open) one.joins = !first || accepts(one, first) ? keys : joinsOf(one);
    },
    noteJoinsOf(one) {
      one.joins = joinsOf(one);
    },
  };

  function waitingFor(demand: Demand): readonly Open<W>[] {
    return byDemand.get(demandKey(demand)) ?? [];
  }

  function join(demand: Demand, waiter: W): Open<W> {
    const key = demandKey(demand);
    const { joinsSentMs, maxAgeMs } = waiter.freshness;
    const sentSinceMs = clock.elapsed() - joinsSentMs;
    let since = joinsSentMs === 0 ? sent : 0;
    for (const { number, sentAtMs } of flights) if (sentAtMs < sentSinceMs) since = Math.max(since, number);
    const others = byDemand.get(key) ?? [];
    const known = knowledge.listed(clock.elapsed() - maxAgeMs);
    let one = others.find(
      (other) =>
        other.writes === writes &&
        // A listing that is young enough for the others may be too old for this one.
        other.known.isSubsetOf(known) &&
        !(isResting(other) && other.rest.untilMs > waiter.deadlineMs) &&
        (since <= other.since || isUntouched(other, since)),
    );
    if (!one) {
      const seen = new Set(known);
      const shownIn = demand.kind === 'animal' ? knowledge.lastShown(demand.id) : undefined;
      one = { ...UNTRIED, demand, known, seen, shownIn, joins: new Set(), waiters: new Set(), since, writes };
      open.add(one);
      byDemand.set(key, [...others, one]);
    }
    one.since = Math.max(one.since, since);
    one.fresh = true;
    one.waiters.add(waiter);
    return one;
  }

  /** Whether nothing that was sent before has a part in it. */
  function isUntouched(one: Open<W>, since: number): boolean {
    if (one.seen.size > 0) return false;
    for (const flight of flights) if (flight.number <= since && accepts(one, flight)) return false;
    return true;
  }

  function leave(one: Open<W>, waiter: W): void {
    one.waiters.delete(waiter);
    if (one.waiters.size > 0) return;
    open.delete(one);
    const key = demandKey(one.demand);
    const others = (byDemand.get(key) ?? []).filter((other) => other !== one);
    if (others.length > 0) byDemand.set(key, others);
    else byDemand.delete(key);
  }

  function joinsOf(one: Open<W>): Set<string> {
    return new Set([...flights].filter((flight) => accepts(one, flight)).map(({ key }) => key));
  }

  function accepts(one: Open<W>, flight: Flight): boolean {
    return flight.number > one.since && flight.writes >= one.writes;
  }
}

/** Whether it pauses before a retry. */
export function isResting<O extends Pick<Open<Waiting>, 'rest'>>(one: O): one is O & { readonly rest: Rest } {
  return one.rest?.over === false;
}

const UNTRIED = {
  metNoRoute: false,
  failure: undefined,
  failures: 0,
  passing: undefined,
  fresh: true,
  rest: undefined,
} as const;
