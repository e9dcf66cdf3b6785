import type { Clock } from '../clock.ts';
import type { KeyLog } from '../log.ts';
import { inTime, graceLeftMs, pause } from '../time-limit.ts';
import type { NewPet, Pet } from '../pet.ts';
import type { PetCache } from '../reads/pet-cache.ts';
import type { RequestTerms } from '../reads/read-request.ts';
import type { RefreshBudget } from '../reads/refresh-budget.ts';
import type { RejectedKey } from '../reads/rejected-key.ts';
import type { RetryBudget } from '../reads/retry-budget.ts';
import type { CallerLists } from '../reads/shared-lists.ts';
import { petSnapshot } from '../reads/snapshot.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { VisitorShares } from '../throttle/visitor-shares.ts';
import type { UpstreamAnswer } from '../upstream/outcome.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import { readError } from '../upstream/upstream-errors.ts';
import { createIdempotency } from './idempotency.ts';
import type { CreateOutcome, Created, SubmitRecords } from './idempotency.ts';
import { mayHaveHappened, outcomeUnknownError } from './unknown-outcome.ts';

interface WritesOptions {
  readonly apiKey: string;
  readonly petApi: PetApi;
  readonly clock: Clock;
  readonly log: KeyLog;
  readonly throttle: Throttle;
  readonly visitorShares: VisitorShares;
  /** Called when a create is refused since its visitor has used its share. */
  readonly onVisitorRefused: (kind: 'write') => void;
  readonly cache: PetCache;
  readonly refreshBudget: RefreshBudget;
  /** Shared by all callers. */
  readonly retryBudget: RetryBudget;
  readonly rejectedKey: RejectedKey;
  /** Undefined without Redis. */
  readonly sharedLists: CallerLists | undefined;
}

interface WriteRequest extends RequestTerms {
  /** All creations with this key within a day are one. */
  readonly idempotencyKey: string | undefined;
  /** A call was sent. */
  readonly charge: () => void;
  /** The quota let it through after this time, or refused it with this error code. */
  readonly waited: (waitedMs: number, refused?: string) => void;
}

const MAY_BE_CREATED =
  'so the pet may have been created. Check with the pets query; to create it anyway, use a new idempotencyKey.';

/** The pauses before further tries where there was no connection. */
const PAUSES_MS = [100, 300, 1_000];
/** Max wait of a response for the announcement of the write to other replicas. */
const ANNOUNCING_MS = 500;

export type Writes = ReturnType<typeof createWrites>;

/** The creations of one caller. They go before its reads, and one that may have happened is never sent again. */
export function createWrites(options: WritesOptions, submits: SubmitRecords) {
  const { apiKey, petApi, throttle, visitorShares, cache, sharedLists, rejectedKey, clock } = options;
  const idempotency = createIdempotency(submits, options, () => void invalidate());
  const underWay = new Set<Promise<unknown>>();

  return {
    /** Rejects with a PetqlError; OUTCOME_UNKNOWN where the pet may have been added or not. */
    async create(pet: NewPet, request: WriteRequest): Promise<Created> {
      const { idempotencyKey: key, deadlineMs } = request;
      // The creations of one operation run one after the other, and the first may have taken all the time.
      if (graceLeftMs(deadlineMs, clock) < 0) throw throttle.refusal('late').error();
      const create = () => post(pet, request);
      const outcome = await track(key === undefined ? create() : idempotency.once({ ...request, key, pet }, create));
      if ('unknown' in outcome) throw outcomeUnknownError(outcome.unknown.status, MAY_BE_CREATED);
      return outcome;
    },
    isBusy: () => underWay.size > 0,
    /** Settles once the outcome of every creation that was sent is stored. */
    async close() {
      idempotency.close();
      await Promise.allSettled(underWay);
    },
  };

  function track<T>(promise: Promise<T>): Promise<T> {
    underWay.add(promise);
    const end = () => underWay.delete(promise);
    promise.then(end, end);
    return promise;
  }

  /** Retries only what surely did not happen: after a 429, and where there was no connection. */
  async function post(pet: NewPet, request: WriteRequest): Promise<CreateOutcome> {
    const pausesMs = PAUSES_MS.values();
    for (;;) {
      const { outcome, sent } = await pass(pet, request);
      if (outcome.kind === 'ok') return { pet: outcome.value };
      if (outcome.kind === 'invalid') return { refusal: outcome.error };
      if (mayHaveHappened(outcome, sent)) {
        const unknown = 'status' in outcome ? { status: outcome.status } : {};
        options.log.warn(
          { request: request.id, ...unknown },
          'a create had no clear response: the pet may have been added',
        );
        return { unknown };
      }
      // The throttle pauses the key, and lets the creation wait where there is time.
      if (outcome.kind === 'rate-limited') continue;
      const pauseMs = sent ? Infinity : (pausesMs.next().value ?? Infinity);
      if (clock.elapsed() + pauseMs > request.deadlineMs) {
        throw readError(outcome, throttle.isAfter429());
      }
      await pause(pauseMs);
    }
  }

  /** Sends one call from the share of its visitor. */
  async function pass(pet: NewPet, request: WriteRequest): Promise<UpstreamAnswer<Pet>> {
    const { visitor } = request;
    if (!visitorShares.hasShare(visitor)) {
      options.onVisitorRefused('write');
      const error = visitorShares.refusal(visitor).error();
      request.waited(0, error.code);
      throw error;
    }

    const atMs = clock.elapsed();
    visitorShares.charge(visitor, atMs);
    let isSent = false;
    try {
      const response = await passThrottle(pet, request);
      isSent = response.sent;
      return response;
    } finally {
      if (!isSent) visitorShares.refund(visitor, atMs);
    }
  }

  async function passThrottle(pet: NewPet, request: WriteRequest): Promise<UpstreamAnswer<Pet>> {
    const { deadlineMs, signal } = request;
    const startedAtMs = clock.elapsed();
    let rejected: Error | undefined;
    const result = await throttle.write({
      id: request.id,
      deadlineMs,
      signal: signal(),
      send() {
        // The upstream may have rejected the key in another call meanwhile.
        rejected = rejectedKey.error();
        if (rejected) return undefined;
        const sentAtMs = clock.elapsed();
        request.waited(sentAtMs - startedAtMs);
        return send(pet, request, sentAtMs);
      },
    });
    if (rejected) throw rejected;
    if (result.kind === 'refused') {
      const error = result.error();
      request.waited(clock.elapsed() - startedAtMs, error.code);
      throw error;
    }
    return (result as Extract<typeof result, { readonly kind: 'answered' }>).answer;
  }

  async function send(pet: NewPet, request: WriteRequest, sentAtMs: number): Promise<UpstreamAnswer<Pet>> {
    const answer = await petApi.createPet(pet, { apiKey, trace: request.trace });
    const { outcome, sent } = answer;
    if (sent) {
      request.charge();
      options.refreshBudget.recordCall();
      options.retryBudget.recordCall();
    }
    if (outcome.kind === 'unauthenticated' && !throttle.isAfter429()) rejectedKey.reject();
    else if (outcome.kind === 'ok' || outcome.kind === 'invalid') rejectedKey.accept();
    // Before the throttle lets anything else through, so that every read that comes now sees the write.
    if (outcome.kind === 'ok' || mayHaveHappened(outcome, sent)) {
      const announced = invalidate(outcome.kind === 'ok' || throttle.isProven());
      if (outcome.kind === 'ok') {
        cache.store(petSnapshot(outcome.value.id, outcome.value, sentAtMs, (key) => cache.findEarlier(key)));
      }
      await inTime(announced, ANNOUNCING_MS);
    }
    return answer;
  }

  /** @param isShared whether other replicas hear of it. The announcement is stored, and no replica has lists of a made-up key. */
  async function invalidate(isShared = true): Promise<void> {
    cache.invalidate();
    if (isShared) await sharedLists?.announce();
  }
}
