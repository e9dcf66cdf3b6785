import type { Clock } from '../clock.ts';
import { PetqlError } from '../errors.ts';
import { inTime, leftMs } from '../in-time.ts';
import type { Refused, Throttle } from '../throttle/throttle.ts';
import type { PetApi, UpstreamAnswer, UpstreamFailure } from '../upstream/pet-api.ts';
import { createAsk } from './ask.ts';
import { callKey } from './call.ts';
import type { Call } from './call.ts';
import { createDeadlines } from './deadlines.ts';
import { ownCall } from './demand.ts';
import type { Demand } from './demand.ts';
import { answerFrom } from './fact.ts';
import type { Fact } from './fact.ts';
import { readError, refusedError } from './failure-errors.ts';
import { failureScope } from './failure-scope.ts';
import { createFewATurn } from './few-a-turn.ts';
import { notCachedError } from './freshness.ts';
import type { Freshness } from './freshness.ts';
import type { GetRoute } from './get-route.ts';
import { createListingRests } from './listing-rests.ts';
import { createKeptPlan } from './kept-plan.ts';
import type { Plan, PlannedCall } from './kept-plan.ts';
import type { Answer, Knowledge } from './knowledge.ts';
import { mayAnswer, waitsForOneUnderWay } from './plan-of-calls.ts';
import type { StoreFacts } from './plan-of-calls.ts';
import type { RefreshAllowance } from './refresh-allowance.ts';
import type { RefusedKey } from './refused-key.ts';
import type { RetryQuota } from './retry-quota.ts';
import { createRests } from './rests.ts';
import type { CallerListings, ListingsListener } from './shared-listings.ts';
import { createWaitingSet, isResting } from './waiting-set.ts';
import type { Flight, Open } from './waiting-set.ts';

/** Why an answer is older than was asked for. */
export type StaleReason = 'GATE_CLOSED' | 'ONLY_IF_CACHED' | 'PLAN_USED_UP' | 'SAVING_CALLS' | 'UPSTREAM_FAILED';

export interface ServedAnswer extends Answer {
  /** Undefined when it is as young as was asked for. */
  readonly staleReason: StaleReason | undefined;
}

/** All reads of one caller: what is known is answered at once, the rest waits together for as few calls as possible. */
export interface Reads {
  /**
   * What can be answered without waiting; undefined where a call is needed.
   *
   * @throws PetqlError NOT_CACHED where a call is needed and may not be made.
   */
  known(demand: Demand, freshness: Freshness): ServedAnswer | undefined;
  /** Waits for the calls that satisfy the demand. Rejects with a PetqlError. */
  wait(demand: Demand, turn: ReadTurn): Promise<ServedAnswer>;
}

/** The same, with what else a caller has to do with them. */
export interface CallerReads extends Reads {
  /**
   * A write is over that may have changed the store; with the animal that it added, as far as that is known. Settles once
   * the other replicas are told.
   */
  wrote(added: Fact | undefined): Promise<void>;
  /** Nobody will ask any more. */
  leave(): void;
  /** How many calls wait to be sent, whether or not a place is asked for them yet. */
  planned(): number;
  /** What a plan of calls follows from at this moment. */
  facts(): StoreFacts;
  /** The throttle's outlook has changed: whoever cannot be served in time is told so at once. */
  review(): void;
  /** From now on nothing is tried again. */
  close(): void;
}

export interface ReadTurn {
  readonly freshness: Freshness;
  /** By `clock.elapsed()`: no call is begun for it later than this. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  /** A call is sent for this one; others may share its answer. */
  charge(): void;
  /** The call that was charged last was not sent: there was no connection. */
  refund(): void;
}

export interface ReadsOptions {
  readonly apiKey: string;
  readonly petApi: PetApi;
  readonly throttle: Throttle;
  readonly refusedKey: RefusedKey;
  readonly getRoute: GetRoute;
  readonly knowledge: Knowledge;
  readonly allowance: RefreshAllowance;
  readonly clock: Clock;
  /** Passes listings between replicas. Default: there are no others. */
  readonly share: ((listener: ListingsListener) => CallerListings) | undefined;
  readonly retryQuota: RetryQuota;
  /** How long a demand rests on average before each of its retries, in milliseconds. Default 100, then 400, then no more. */
  readonly retryPausesMs?: readonly number[];
  /** A call is sent that is a retry. */
  onRetry(call: Call): void;
}

interface Waiter extends ReadTurn {
  /** When its deadline came while a call for it was under way, by `clock.elapsed()`; Infinity before that. */
  lateSinceMs: number;
  /** What went wrong with a call that it waited for; what went wrong before it came is none of its business. */
  failed: PetqlError | undefined;
  settle(result: ServedAnswer | Error): void;
}

type OpenRead = Open<Waiter>;

/** A waiter by its deadline. */
interface Due {
  readonly deadlineMs: number;
  readonly waiter: Waiter;
  readonly one: OpenRead;
}

/** Different demands that may wait at a time; further ones are refused. */
const MOST_OPEN = 10_000;
/** Places asked of the throttle at a time: more could not be sent at once anyway. */
const MOST_PLACES = 100;
/**
 * Demands that are answered in one turn of the event loop: what an operation makes of an answer, of an error most of all, takes
 * longer than all that is done for it here, and a listing or a deadline may answer thousands.
 */
const MOST_ANSWERS_A_TURN = 200;

export function createReads(options: ReadsOptions): CallerReads {
  const { throttle, refusedKey, getRoute, knowledge, allowance, retryQuota, clock } = options;
  const { retryPausesMs = [100, 400] } = options;
  const waitingSet = createWaitingSet<Waiter>(clock, knowledge);
  const { open, flights } = waitingSet;
  const plan = createKeptPlan(waitingSet, facts);
  const listingRests = createListingRests(clock);
  const fewATurn = createFewATurn(MOST_ANSWERS_A_TURN);
  const deadlines = createDeadlines<Due>(clock, (dues, deadlineMs) => void onDeadline(dues, deadlineMs));
  const ask = createAsk(options.petApi, getRoute, options.apiKey);
  /** Places that were asked of the throttle and have not come up. */
  const places: AbortController[] = [];
  const rests = createRests({
    clock,
    retryQuota,
    pausesMs: retryPausesMs,
    onOver() {
      plan.changed();
      review();
    },
  });
  /** Whom a call under way is charged to. */
  const payers = new WeakMap<Flight, ReadTurn>();
  let reviewing = false;
  /** The last plan that was searched for those whose deadline had come, by its number: none comes into it later. */
  let searched = 0;
  const shared = options.share?.({
    learn: learnFromOthers,
    wrote() {
      waitingSet.wrote();
      knowledge.outdate();
    },
  });

  return {
    known,
    wait: shared ? (demand, turn) => waitAmong(shared, demand, turn) : wait,
    wrote,
    review,
    leave: () => shared?.leave(),
    planned,
    facts,
    close() {
      for (const one of open) if (isResting(one)) fail(one, one.passing as PetqlError);
      rests.close();
    },
  };

  function known(demand: Demand, { maxAgeMs, maxStaleMs, mayCall, spares }: Freshness): ServedAnswer | undefined {
    const answer = knowledge.find(demand);
    const ageMs = answer ? clock.elapsed() - answer.asOfMs : Infinity;
    if (answer && ageMs <= maxAgeMs) return served(answer);
    const good = answer && ageMs <= maxStaleMs;
    if (!mayCall) {
      if (good) return served(answer, 'ONLY_IF_CACHED');
      throw notCachedError();
    }
    if (!good || !spares) return undefined;
    const waiting = waitingSet.waitingFor(demand);
    if (waiting.length > 0) return waiting.every(isResting) ? served(answer, 'UPSTREAM_FAILED') : undefined;
    if (allowance.allows(demand, answer.asOfMs, planned())) return undefined;
    // Another replica may have spent a call on it; whoever asks next gets that answer.
    shared?.glance();
    return served(answer, 'SAVING_CALLS');
  }

  /** Another replica may have asked already: its answer costs a look at Redis and no call. */
  async function waitAmong(others: CallerListings, demand: Demand, turn: ReadTurn): Promise<ServedAnswer> {
    // Who takes no older answer has to be known to the others all the same: what it reads is remembered.
    await inTime(others.sync(), leftMs(turn.deadlineMs, clock), undefined);
    if (turn.freshness.joinsSentMs > 0) {
      const answer = known(demand, turn.freshness);
      if (answer) return answer;
    }
    return wait(demand, turn);
  }

  function wait(demand: Demand, turn: ReadTurn): Promise<ServedAnswer> {
    return new Promise((resolve, reject) => {
      const { signal, deadlineMs } = turn;
      if (signal?.aborted) return reject(refusedError(givenUp, clock.now()));
      if (open.size >= MOST_OPEN)
        return reject(refusedError({ ...throttle.outlook(0).refused, reason: 'crowded' }, clock.now()));
      const waiter: Waiter = {
        ...turn,
        lateSinceMs: Infinity,
        failed: undefined,
        settle(result) {
          deadlines.delete(due);
          signal?.removeEventListener('abort', onAbort);
          waitingSet.leave(one, waiter);
          if (one.waiters.size === 0) plan.left(one);
          fewATurn(() => (result instanceof Error ? reject(result) : resolve(result)));
        },
      };
      const onAbort = () => {
        waiter.settle(refusedError(givenUp, clock.now()));
        reviewSoon();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      const one = waitingSet.join(demand, waiter);
      if (one.waiters.size === 1) plan.joined(one);
      const due = { deadlineMs, waiter, one };
      deadlines.add(due);
      reviewSoon();
    });
  }

  /** Whoever is planned for is refused; whoever waits for a call under way goes on, since that was begun in time. */
  async function onDeadline(dues: ReadonlySet<Due>, deadlineMs: number): Promise<void> {
    await throttle.toldBy(deadlineMs);
    const nowMs = clock.elapsed();
    for (const { waiter, one } of dues) {
      if (!one.waiters.has(waiter)) continue;
      waiter.lateSinceMs = nowMs;
      const position = plan.positionOf(one);
      if (position >= 0) refuse(waiter, one, throttle.outlook(position).refused);
    }
    reviewSoon();
  }

  async function wrote(added: Fact | undefined): Promise<void> {
    waitingSet.wrote();
    knowledge.outdate();
    if (added) knowledge.learn(added);
    await shared?.wrote();
  }

  /** Once for all that come and go together: a request brings up to a hundred demands, and each review looks at all that wait. */
  function reviewSoon(): void {
    if (reviewing) return;
    reviewing = true;
    queueMicrotask(() => {
      reviewing = false;
      review();
    });
  }

  /** Refuses whom the wait would cost the deadline, and asks for as many places as there are calls to send. */
  function review(): void {
    if (open.size === 0 && places.length === 0) return;
    for (const one of plan.now().unprovable) fail(one, one.failure ?? unprovableError());
    while (refuseHopeless(plan.now()));
    const wanted = Math.min(plan.now().calls.size, MOST_PLACES);
    while (places.length > wanted) places.pop()?.abort();
    while (places.length < wanted) takePlace();
  }

  function planned(): number {
    return open.size === 0 ? 0 : plan.now().calls.size;
  }

  function facts(): StoreFacts {
    return {
      size: knowledge.size(),
      askedInParts: knowledge.askedInParts() || flights.size > 0,
      singleReadsWork: getRoute.mayBeAsked,
      resting: listingRests.resting(),
    };
  }

  /** @returns whether anybody was refused, so that another plan may do. */
  function refuseHopeless({ number, calls }: Plan<OpenRead>): boolean {
    if (calls.size === 0) return false;
    // The last waits longest: where that is in time for whoever has least, all others are.
    const last = throttle.outlook(calls.size - 1);
    const nowMs = clock.elapsed();
    const allInTime = last.waitMs === 0 || nowMs + last.waitMs <= deadlines.earliestMs();
    if (allInTime && searched === number) return false;
    searched = number;
    let refused = false;
    let position = 0;
    for (const { waiting } of calls.values()) {
      const { waitMs } = allInTime ? last : throttle.outlook(position);
      for (const one of waiting) {
        for (const waiter of one.waiters) {
          if (waiter.lateSinceMs === Infinity && (waitMs === 0 || nowMs + waitMs <= waiter.deadlineMs)) continue;
          refuse(waiter, one, throttle.outlook(position).refused);
          refused = true;
        }
      }
      position += 1;
    }
    return refused;
  }

  function takePlace(): void {
    const place = new AbortController();
    places.push(place);
    const forget = () => {
      const index = places.indexOf(place);
      if (index >= 0) places.splice(index, 1);
    };
    let flight: Flight | undefined;
    const send = () => {
      forget();
      flight = nextFlight();
      return flight && ask(flight.call, flight.sentAtMs);
    };
    throttle.pass({ kind: 'read', deadlineMs: Infinity, signal: place.signal }, send).then(
      (passage) => {
        forget();
        if (passage.kind === 'answered') finish(flight as Flight, passage.answer);
        else if (passage.kind === 'refused' && passage.reason !== 'aborted') refuseAll(passage);
      },
      // Nothing in a call throws but by a mistake of ours; whoever waits must not wait for ever because of it.
      (error: unknown) => {
        forget();
        if (flight) waitingSet.arrive(flight);
        plan.changed();
        failAll(error as Error);
      },
    );
  }

  function refuseAll(refused: Refused): void {
    for (const { waiting } of plan.now().calls.values()) {
      for (const one of waiting) for (const waiter of one.waiters) refuse(waiter, one, refused);
    }
  }

  /** What leaves now that something may; undefined where nothing is wanted any more. */
  function nextFlight(): Flight | undefined {
    // Another call may have found out meanwhile that the upstream does not take this key.
    if (refusedKey.remainingMs() > 0) failAll(refusedKey.error());
    const next = nextCall();
    if (!next) return undefined;
    const { call, waiting, isRetry } = next;
    if (isRetry) options.onRetry(call);
    const [payer] = payerOf(call, waiting)?.waiters ?? [];
    payer?.charge();
    allowance.spend();
    const flight = waitingSet.depart(call, { isRetry, sharedWrites: shared?.writes ?? '' });
    if (payer) payers.set(flight, payer);
    plan.sent(call);
    review();
    return flight;
  }

  /** Without the retries that there is no room for: those who wait for them alone have had their answer. */
  function nextCall(): (PlannedCall<OpenRead> & { readonly isRetry: boolean }) | undefined {
    for (;;) {
      const [next] = plan.now().calls.values();
      if (!next) return undefined;
      const isRetry = [...next.waiting].every(({ passing, fresh }) => passing && !fresh);
      if (!isRetry || retryQuota.take()) return { ...next, isRetry };
      for (const one of next.waiting) fail(one, one.passing as PetqlError);
    }
  }

  /** An answer is in, and the throttle knows of it. */
  function finish(flight: Flight, { outcome, sent: wasSent }: UpstreamAnswer<Fact>): void {
    waitingSet.arrive(flight);
    if (!wasSent) refund(flight);
    else if (!flight.isRetry) retryQuota.called();
    if (outcome.kind === 'ok') land(flight, outcome.value);
    else landFailed(flight, outcome);
    plan.answered(flight.call);
    review();
    refuseOverdue(flight.call);
  }

  /** Before anybody is told: whoever is answered now tells of its cost. */
  function refund(flight: Flight): void {
    payers.get(flight)?.refund();
    allowance.refund();
  }

  /** Whoever waits beyond its deadline does so for calls that were begun in time, and not for what others were sent since. */
  function refuseOverdue(call: Call): void {
    for (const one of waitingSet.concernedBy(call)) {
      const overdue = [...one.waiters].filter(({ lateSinceMs }) => lateSinceMs < Infinity);
      if (overdue.length === 0) continue;
      const sentAtMs = firstCallFor(one)?.sentAtMs ?? Infinity;
      for (const waiter of overdue) {
        if (waiter.lateSinceMs < sentAtMs) refuse(waiter, one, throttle.outlook(0).refused);
      }
    }
  }

  /** Of the calls under way that may answer it, the one that was sent first. */
  function firstCallFor(one: OpenRead): Flight | undefined {
    for (const flight of flights) if (waitingSet.accepts(one, flight) && mayAnswer(flight.call, one)) return flight;
    return undefined;
  }

  /** Whoever may use the answer is served, and whom it does not help goes on. */
  function land(flight: Flight, fact: Fact): void {
    refusedKey.accept();
    if (mayBeOfNoRoute(flight, fact)) return goOnInListings(flight);
    if (flight.call.kind === 'list') listingRests.came(flight.call.listing);
    if (waitingSet.isCurrent(flight)) {
      knowledge.learn(fact);
      shared?.share(fact, flight.sharedWrites);
    }
    for (const one of waitingSet.concernedBy(flight.call)) {
      if (!waitingSet.accepts(one, flight)) continue;
      const pets = answerFrom(fact, one.demand);
      if (pets) serve(one, { pets, asOfMs: fact.asOfMs, staleReason: undefined });
      else if (flight.call.kind === 'list') one.seen.add(flight.call.listing);
    }
  }

  /** A call of another replica has found it out: whom it is young enough for needs none of its own. */
  function learnFromOthers(fact: Fact): void {
    knowledge.learn(fact);
    const { call, asOfMs } = fact;
    if (call.kind === 'list') listingRests.came(call.listing);
    const ageMs = clock.elapsed() - asOfMs;
    for (const one of open) {
      const takers = [...one.waiters].filter(
        ({ freshness }) => freshness.joinsSentMs > 0 && ageMs <= freshness.maxAgeMs,
      );
      const pets = answerFrom(fact, one.demand);
      if (pets) for (const waiter of takers) waiter.settle({ pets, asOfMs, staleReason: undefined });
      else if (call.kind === 'list' && takers.length === one.waiters.size) one.seen.add(call.listing);
    }
    plan.changed();
    reviewSoon();
  }

  /** A route that is gone may answer as it did for an animal that is not there. By now the date of that answer is known. */
  function mayBeOfNoRoute({ call }: Flight, fact: Fact): boolean {
    return call.kind === 'get' && fact.animal(call.id) === null && !getRoute.provesAbsence;
  }

  function goOnInListings(flight: Flight): void {
    for (const one of open) if (waitingSet.accepts(one, flight) && mayAnswer(flight.call, one)) one.metNoRoute = true;
    plan.changed();
  }

  /** A call brought nothing: whoever needs that very call fails, or gets what is known; whom another one may help goes on. */
  function landFailed(flight: Flight, failure: UpstreamFailure): void {
    const { call } = flight;
    const refusedLately = throttle.standing()?.refusedLately ?? false;
    const error = readError(failure, refusedLately);
    if (failure.kind === 'unauthenticated') refusedKey.refuse();
    // A key that the upstream does not take, or not for this, is not served from memory; one that may be banned is.
    if (failure.kind === 'unauthenticated' || failure.kind === 'forbidden') {
      if (!refusedLately) knowledge.forget();
      failAll(error);
    } else if (failure.kind === 'route-gone' && call.kind === 'get') {
      goOnInListings(flight);
    } else if (failure.kind !== 'rate-limited') {
      const scope = failureScope(failure);
      if (call.kind === 'list') listingRests.failed(call.listing, scope);
      const concerned = [...waitingSet.concernedBy(call)].filter(
        (one) => waitingSet.accepts(one, flight) && mayAnswer(call, one),
      );
      if (scope === 'passing') return landPassing(concerned, error);
      for (const one of concerned) {
        const own = callKey(ownCall(one.demand)) === flight.key;
        if (own || call.kind === 'get' || (scope === 'service' && !waitsForAnother(one))) fail(one, error);
        else {
          one.seen.add(call.listing);
          one.failure = error;
          noteFailed(one, error);
        }
      }
    }
  }

  /**
   * Who waited for it is served from memory, or rests and tries again, as far as there is room and time. Nobody goes on to
   * other calls meanwhile: what spoilt this one would most likely spoil them all.
   */
  function landPassing(concerned: readonly OpenRead[], error: PetqlError): void {
    const waiting: OpenRead[] = [];
    for (const one of concerned) {
      one.failures += 1;
      one.passing = error;
      one.fresh = false;
      noteFailed(one, error);
      if (one.failures > retryPausesMs.length) fail(one, error);
      else if (!waitsForAnother(one)) waiting.push(one);
    }
    for (const one of waiting) serveKnown(one, 'UPSTREAM_FAILED');
    const left = waiting.filter(({ waiters }) => waiters.size > 0);
    if (left.length === 0) return;
    const rest = rests.begin(Math.max(...left.map(({ failures }) => failures)) - 1);
    for (const one of left) {
      one.rest = rest;
      for (const waiter of one.waiters) if (!rest || rest.untilMs > waiter.deadlineMs) waiter.settle(error);
    }
  }

  /** Whether a call that is still under way may answer it. */
  function waitsForAnother(one: OpenRead): boolean {
    waitingSet.noteJoinsOf(one);
    return waitsForOneUnderWay(one);
  }

  function fail(one: OpenRead, error: Error, reason: StaleReason = 'UPSTREAM_FAILED'): void {
    serveKnown(one, reason);
    for (const waiter of one.waiters) waiter.settle(error);
  }

  /** Serves those that what is known is young enough for. */
  function serveKnown({ demand, waiters }: OpenRead, reason: StaleReason): void {
    for (const waiter of waiters) {
      const answer = lastResort(waiter, demand, reason);
      if (answer) waiter.settle(answer);
    }
  }

  function failAll(error: Error): void {
    for (const one of open) fail(one, error, 'GATE_CLOSED');
  }

  function refuse(waiter: Waiter, { demand }: OpenRead, refused: Refused): void {
    const { failed } = waiter;
    const closed = refused.reason === 'banned' || (throttle.standing()?.pausedForMs ?? 0) > 0;
    const reason = closed ? 'GATE_CLOSED' : failed ? 'UPSTREAM_FAILED' : 'PLAN_USED_UP';
    // There is no retry where there is no call in time: what it was to make good is what went wrong.
    waiter.settle(lastResort(waiter, demand, reason) ?? failed ?? refusedError(refused, clock.now()));
  }

  /** What is known, where it is no older than the request takes. */
  function lastResort({ freshness }: Waiter, demand: Demand, reason: StaleReason): ServedAnswer | undefined {
    const answer = knowledge.find(demand);
    const ageMs = answer ? clock.elapsed() - answer.asOfMs : Infinity;
    if (!answer || ageMs > freshness.maxStaleMs) return undefined;
    return served(answer, ageMs > freshness.maxAgeMs ? reason : undefined);
  }
}

/** Of those that wait for a call, one that announced it: what saves others may be theirs to pay, and is nobody else's. */
function payerOf(call: Call, waiting: ReadonlySet<OpenRead>): OpenRead | undefined {
  const key = callKey(call);
  let payer: OpenRead | undefined;
  for (const one of waiting) {
    if (callKey(ownCall(one.demand)) === key) return one;
    if (!payer || (call.kind === 'list' && payer.shownIn !== call.listing && one.shownIn === call.listing)) payer = one;
  }
  return payer;
}

function noteFailed({ waiters }: OpenRead, error: PetqlError): void {
  for (const waiter of waiters) waiter.failed = error;
}

function serve({ waiters }: OpenRead, answer: ServedAnswer): void {
  for (const waiter of waiters) waiter.settle(answer);
}

function served({ pets, asOfMs }: Answer, staleReason?: StaleReason): ServedAnswer {
  return { pets, asOfMs, staleReason };
}

const givenUp: Refused = { kind: 'refused', reason: 'aborted', retryAfterMs: 1_000, window: 'MINUTE' };

function unprovableError(): PetqlError {
  return new PetqlError(
    'DOWNSTREAM_SERVICE_ERROR',
    'Whether there is such an animal cannot be told: the service does not answer for single animals, and its listings, ' +
      'of 100 animals at most, do not show this one. Ask for lists by status instead.',
    { details: { upstream: {} } },
  );
}
