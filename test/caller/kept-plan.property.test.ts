import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ListingName } from '../../src/caller/call.ts';
import { callKey } from '../../src/caller/call.ts';
import type { Demand } from '../../src/caller/demand.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { createKeptPlan } from '../../src/caller/kept-plan.ts';
import { NONE_REST } from '../../src/caller/listing-rests.ts';
import type { RestingListings } from '../../src/caller/listing-rests.ts';
import { mayAnswer, planCalls } from '../../src/caller/plan-of-calls.ts';
import type { StoreFacts } from '../../src/caller/plan-of-calls.ts';
import { createWaitingSet, isResting } from '../../src/caller/waiting-set.ts';
import type { Flight, Open, Waiting } from '../../src/caller/waiting-set.ts';
import type { Int64 } from '../../src/int64.ts';
import { anyListing } from './model-store.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 2_000);
const DEFAULTS = { maxAgeMs: 1_000, maxStaleMs: 600_000 };

type Step =
  | {
      readonly kind: 'join';
      readonly demand: Demand;
      readonly strict: boolean;
      readonly knows: readonly ListingName[];
      readonly shownIn: ListingName | undefined;
    }
  /** By its place among those that may do this, as in all that follow. */
  | { readonly kind: 'answer' | 'fail' | 'leave' | 'wake'; readonly which: number }
  | { readonly kind: 'send' | 'write' }
  | { readonly kind: 'learn'; readonly facts: StoreFacts };

/** Few ids, so that several wait for the same one. */
const demands: fc.Arbitrary<Demand> = fc.oneof(
  { weight: 5, arbitrary: fc.nat(12).map((id): Demand => ({ kind: 'animal', id: String(id) as Int64 })) },
  { weight: 1, arbitrary: anyListing.map((listing): Demand => ({ kind: 'listing', listing })) },
);
const anyFacts: fc.Arbitrary<StoreFacts> = fc.record({
  size: fc.constantFrom('large', 'large', 'small', 'unknown'),
  askedInParts: fc.boolean(),
  singleReadsWork: fc.constantFrom(true, true, false),
  resting: fc.constantFrom<RestingListings>(
    NONE_REST,
    NONE_REST,
    new Map([['all', 4]]),
    new Map([
      ['sold', 4],
      ['pending', 32],
    ]),
  ),
});
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('join' as const),
      demand: demands,
      strict: fc.boolean(),
      knows: fc.subarray<ListingName>(['all', 'available', 'sold']),
      shownIn: fc.option(anyListing, { nil: undefined }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('answer' as const, 'answer' as const, 'leave' as const, 'fail' as const),
      which: fc.nat(),
    }),
  },
  { weight: 5, arbitrary: fc.constant<Step>({ kind: 'send' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'write' }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wake' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('learn' as const), facts: anyFacts }) },
);

test('whatever comes and goes, the plan that is kept is the one that would be made anew', () => {
  fc.assert(
    fc.property(anyFacts, fc.array(anyStep, { maxLength: 60 }), (firstFacts, steps) => {
      let facts = firstFacts;
      let knows: readonly ListingName[] = [];
      let shownIn: ListingName | undefined;
      const waitingSet = createWaitingSet<Waiting>(
        { elapsed: () => 0 },
        { listed: () => new Set(knows), lastShown: () => shownIn },
      );
      const { open, flights } = waitingSet;
      const plan = createKeptPlan(waitingSet, () => facts);
      const rests = new Set<{ over: boolean; untilMs: number }>();

      for (const step of steps) {
        take(step);
        expect(shown(plan.now())).toEqual(anew());
      }

      function take(step: Step): void {
        if (step.kind === 'join') {
          ({ knows, shownIn } = step);
          const freshness = readFreshness(step.strict ? 'no-cache' : undefined, DEFAULTS);
          const one = waitingSet.join(step.demand, { freshness, deadlineMs: 1_000 });
          if (one.waiters.size === 1) plan.joined(one);
        } else if (step.kind === 'send') {
          const [next] = plan.now().calls.values();
          if (!next) return;
          waitingSet.depart(next.call, { isRetry: false, sharedWrites: '' });
          plan.sent(next.call);
        } else if (step.kind === 'answer' || step.kind === 'fail') {
          const flight = pick(flights, step.which);
          if (flight) land(flight, step.kind === 'answer');
        } else if (step.kind === 'leave') {
          const one = pick(open, step.which);
          if (one) leave(one);
        } else if (step.kind === 'wake') {
          const rest = pick(rests, step.which);
          if (rest) rest.over = true;
          plan.changed();
        } else if (step.kind === 'write') waitingSet.wrote();
        else if (step.kind === 'learn') facts = step.facts;
      }

      function land(flight: Flight, good: boolean): void {
        waitingSet.arrive(flight);
        const { call } = flight;
        for (const one of waitingSet.concernedBy(call)) {
          if (!waitingSet.accepts(one, flight) || !mayAnswer(call, one)) continue;
          if (good && (call.kind === 'get' || one.demand.kind === 'listing')) leave(one);
          else if (call.kind === 'list') one.seen.add(call.listing);
          else if (flight.number % 3 === 0) {
            one.metNoRoute = true;
            plan.changed();
          } else if (flight.number % 2 === 0) {
            const rest = { over: false, untilMs: 10 };
            one.rest = rest;
            rests.add(rest);
          }
        }
        plan.answered(call);
      }

      function leave(one: Open<Waiting>): void {
        for (const waiter of one.waiters) waitingSet.leave(one, waiter);
        plan.left(one);
      }

      function anew(): ReturnType<typeof shown> {
        waitingSet.noteJoins();
        const planned = planCalls(
          [...open].filter((one) => !isResting(one)),
          facts,
        );
        return shown({ ...planned, calls: new Map(planned.calls.map((entry) => [callKey(entry.call), entry])) });
      }
    }),
    { numRuns: RUNS },
  );
});

/** Whatever the order is, and which of two listings an animal waits for that both may show it. */
function shown({
  calls,
  unprovable,
}: {
  readonly calls: ReadonlyMap<string, { readonly waiting: Iterable<Open<Waiting>> }>;
  readonly unprovable: readonly Open<Waiting>[];
}): { calls: string[]; waiting: ReadonlySet<Open<Waiting>>; unprovable: readonly Open<Waiting>[] } {
  const waiting = new Set([...calls.values()].flatMap((entry) => [...entry.waiting]));
  return { calls: [...calls.keys()].toSorted(), waiting, unprovable };
}

function pick<T>(all: ReadonlySet<T>, which: number): T | undefined {
  return [...all][which % Math.max(1, all.size)];
}

test('a listing for one that met no route is not sent once that one has left', () => {
  const facts = { size: 'large', askedInParts: false, singleReadsWork: true, resting: NONE_REST } as const;
  const waitingSet = createWaitingSet<Waiting>(
    { elapsed: () => 0 },
    { listed: () => new Set(), lastShown: () => undefined },
  );
  const plan = createKeptPlan(waitingSet, () => facts);
  const join = (id: string) => {
    const freshness = readFreshness(undefined, DEFAULTS);
    const one = waitingSet.join({ kind: 'animal', id: id as Int64 }, { freshness, deadlineMs: 1_000 });
    plan.joined(one);
    return one;
  };
  const first = join('-1');
  first.metNoRoute = true;
  plan.changed();
  expect([...plan.now().calls.keys()]).toEqual(['list all']);
  join('1');
  join('2');
  for (const waiter of first.waiters) waitingSet.leave(first, waiter);
  plan.left(first);
  expect([...plan.now().calls.keys()].toSorted()).toEqual(['get 1', 'get 2']);
});

// With thousands waiting, a plan made anew for each newcomer takes seconds.
test('newcomers change nothing beside a listing that rests and is wanted, nor those that alone were shown in one', () => {
  const facts: StoreFacts = {
    size: 'large',
    askedInParts: false,
    singleReadsWork: true,
    resting: new Map([['sold', 128]]),
  };
  let shownIn: ListingName | undefined;
  const waitingSet = createWaitingSet<Waiting>(
    { elapsed: () => 0 },
    { listed: () => new Set(), lastShown: () => shownIn },
  );
  const plan = createKeptPlan(waitingSet, () => facts);
  const join = (demand: Demand) => {
    const one = waitingSet.join(demand, { freshness: readFreshness(undefined, DEFAULTS), deadlineMs: 1_000 });
    plan.joined(one);
    return one;
  };
  join({ kind: 'listing', listing: 'sold' });
  const { number } = plan.now();
  for (let id = 0; id < 500; id += 1) {
    join({ kind: 'animal', id: String(id) as Int64 });
    expect(plan.now().number).toBe(number);
  }
  shownIn = 'pending';
  for (let visit = 0; visit < 50; visit += 1) {
    const one = join({ kind: 'animal', id: '900' as Int64 });
    expect(plan.now()).toMatchObject({ number, calls: { size: 502 } });
    for (const waiter of one.waiters) waitingSet.leave(one, waiter);
    plan.left(one);
  }
  expect(plan.now()).toMatchObject({ number, calls: { size: 501 } });
});
