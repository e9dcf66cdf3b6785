import type { Clock } from '../clock.ts';
import type { UpstreamOperation } from '../events.ts';
import type { KeyLog } from '../log.ts';
import type { PetCache } from '../reads/cache/pet-cache.ts';
import type { RequestTerms } from '../reads/read-request.ts';
import type { RefreshBudget } from '../reads/refresh-budget.ts';
import type { RejectedKey } from '../reads/rejected-key.ts';
import type { RetryBudget } from '../reads/retry-budget.ts';
import type { CallerLists } from '../reads/cache/caller-lists.ts';
import type { Snapshot } from '../reads/cache/snapshot.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { VisitorShares } from '../throttle/visitor-shares.ts';
import { waitAtMost, pause } from '../time-limit.ts';
import type { UpstreamAnswer, UpstreamFailure } from '../upstream/outcome.ts';
import type { PetApi, UpstreamCall } from '../upstream/pet-api.ts';
import { mayHaveHappened } from './unknown-outcome.ts';

/** One upstream operation that changes the pet store. */
export interface Write<T> {
  /** Its name in the log. */
  readonly operation: UpstreamOperation;
  readonly send: (petApi: PetApi, call: UpstreamCall) => Promise<UpstreamAnswer<T>>;
  /** Returns what its success shows of the pet store. */
  readonly snapshotOf: (value: T, sentAtMs: number) => Snapshot;
}

/** How a write ended. */
type WriteOutcome<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** It surely did not happen. */
  | UpstreamFailure
  /** It may have happened; with the status of the response that was not clear, if there was one. */
  | { readonly kind: 'unknown'; readonly status: number | undefined };

export interface WriteRequest extends RequestTerms {
  /** Called when a call was sent. */
  readonly onBilled: () => void;
  /** Called when the quota let a call through after this time, or refused it with this error code. */
  readonly onWaited: (waitedMs: number, refused?: string) => void;
}

export interface WriteSenderOptions {
  readonly apiKey: string;
  readonly petApi: PetApi;
  readonly clock: Clock;
  readonly log: KeyLog;
  readonly throttle: Throttle;
  readonly visitorShares: VisitorShares;
  /** Called when a write is refused since its visitor has used its share. */
  readonly onVisitorRefused: (kind: 'write') => void;
  readonly cache: PetCache;
  readonly refreshBudget: RefreshBudget;
  /** Shared by all callers. */
  readonly retryBudget: RetryBudget;
  readonly rejectedKey: RejectedKey;
  /** Undefined without Redis. */
  readonly sharedLists: CallerLists | undefined;
}

/** The pauses before further tries where there was no connection. */
const PAUSES_MS = [100, 300, 1_000];
/** Max wait of a response for the announcement of the write to other replicas. */
const ANNOUNCING_MS = 500;

/** Sends the writes of one caller. They go before its reads, and one that may have happened is never sent again. */
export class WriteSender {
  readonly #options: WriteSenderOptions;

  constructor(options: WriteSenderOptions) {
    this.#options = options;
  }

  /**
   * Sends a write, and sends it again only where it surely did not happen: after a 429, and where there was no connection.
   * Rejects with a PetqlError where petql refuses it.
   */
  async send<T>(write: Write<T>, request: WriteRequest): Promise<WriteOutcome<T>> {
    const pausesMs = PAUSES_MS.values();
    for (;;) {
      const { outcome, sent } = await this.#sendFromShare(write, request);
      if (outcome.kind === 'ok') return outcome;
      if (mayHaveHappened(outcome, sent)) {
        const status = 'status' in outcome ? outcome.status : undefined;
        this.#logUnknown(write.operation, request.id, status);
        return { kind: 'unknown', status };
      }

      // The throttle pauses the key, and lets the write wait where there is time.
      if (outcome.kind === 'rate-limited') continue;
      const pauseMs = sent ? Infinity : (pausesMs.next().value ?? Infinity);
      if (this.#options.clock.elapsed() + pauseMs > request.deadlineMs) return outcome;
      await pause(pauseMs);
    }
  }

  /**
   * Raises the generation of the cache. Settles once the store has the write for the other replicas.
   *
   * @param isShared whether other replicas hear of it: the announcement is stored, and none has lists of a made-up key.
   */
  async invalidate(isShared = true): Promise<void> {
    this.#options.cache.invalidate();
    if (isShared) await this.#options.sharedLists?.announce();
  }

  #logUnknown(operation: UpstreamOperation, requestId: string, status: number | undefined): void {
    const details = { request: requestId, call: operation, ...(status !== undefined && { status }) };
    this.#options.log.warn(details, 'a write had no clear response: it may have happened');
  }

  /** Makes one try from the share of its visitor. */
  async #sendFromShare<T>(write: Write<T>, request: WriteRequest): Promise<UpstreamAnswer<T>> {
    const { clock, throttle, visitorShares, onVisitorRefused } = this.#options;
    const { visitor } = request;
    // Other replicas may have used what was left when this one looked.
    if (visitor !== undefined && throttle.hasOldView()) await throttle.readQuotaState();
    if (!visitorShares.hasShare(visitor)) {
      onVisitorRefused('write');
      const error = visitorShares.refusal(visitor).error();
      request.onWaited(0, error.code);
      throw error;
    }

    const atMs = clock.elapsed();
    visitorShares.charge(visitor, atMs);
    let isSent = false;
    try {
      const response = await this.#sendWithPermit(write, request);
      isSent = response.sent;
      return response;
    } finally {
      if (!isSent) visitorShares.refund(visitor, atMs);
    }
  }

  async #sendWithPermit<T>(write: Write<T>, request: WriteRequest): Promise<UpstreamAnswer<T>> {
    const { clock, throttle, rejectedKey } = this.#options;
    const startedAtMs = clock.elapsed();
    let rejected: Error | undefined;
    let response: UpstreamAnswer<T> | undefined;
    const result = await throttle.write({
      id: request.id,
      name: write.operation,
      deadlineMs: request.deadlineMs,
      signal: request.signal(),
      send: () => {
        // The upstream may have rejected the key in another call meanwhile.
        rejected = rejectedKey.error();
        if (rejected) return undefined;
        const sentAtMs = clock.elapsed();
        request.onWaited(sentAtMs - startedAtMs);
        return this.#call(write, request, sentAtMs).then((answer) => (response = answer));
      },
    });

    if (result.kind === 'refused') {
      const error = result.error();
      request.onWaited(clock.elapsed() - startedAtMs, error.code);
      throw error;
    }
    if (!response) throw rejected ?? new Error('a write has no response');
    return response;
  }

  /** Sends the call. Reads that begin after a write see it, since this is before the throttle lets anything else through. */
  async #call<T>(write: Write<T>, request: WriteRequest, sentAtMs: number): Promise<UpstreamAnswer<T>> {
    const { apiKey, petApi, throttle, cache, refreshBudget, retryBudget, rejectedKey } = this.#options;
    const answer = await write.send(petApi, { apiKey, trace: request.trace });
    const { outcome, sent } = answer;
    if (sent) {
      request.onBilled();
      refreshBudget.recordCall();
      retryBudget.recordCall();
    }
    if (outcome.kind === 'unauthenticated' && !throttle.isAfter429()) rejectedKey.reject();
    else if (outcome.kind === 'ok') rejectedKey.accept();

    if (outcome.kind === 'ok' || mayHaveHappened(outcome, sent)) {
      const announced = this.invalidate(outcome.kind === 'ok' || throttle.isProven());
      if (outcome.kind === 'ok') cache.store(write.snapshotOf(outcome.value, sentAtMs));
      await waitAtMost(announced, ANNOUNCING_MS);
    }
    return answer;
  }
}
