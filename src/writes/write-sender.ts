import type { CallerRequest } from '../common/caller-request.ts';
import type { UpstreamOperation } from '../common/events.ts';
import type { ReadParts } from '../reads/pending-reads.ts';
import type { PetReads } from '../reads/pet-reads.ts';
import type { Snapshot } from '../pets/snapshot.ts';
import { waitAtMost, pause } from '../common/time-limit.ts';
import { failureDetails } from '../upstream/outcome.ts';
import type { OwnFailure, UpstreamAnswer, UpstreamFailure, UpstreamOutcome } from '../upstream/outcome.ts';
import type { PetApi, UpstreamCall } from '../pets/pet-api.ts';
import { mayHaveHappened } from './unknown-outcome.ts';
import { WriteCall } from './write-call.ts';

/** What the writes of one caller are made of. */
export interface WriteParts extends Pick<ReadParts, 'cache' | 'clock' | 'line' | 'log' | 'petApi' | 'quota'> {
  readonly reads: PetReads;
}

/** One upstream operation that changes the pet store. */
export interface Write<T> {
  /** Its name in the log. */
  readonly operation: UpstreamOperation;
  readonly send: (petApi: PetApi, call: UpstreamCall) => Promise<UpstreamAnswer<T>>;
  /** Returns what its outcome shows of the pet store: a failure may do so too, as a 404 for the pet to delete. */
  readonly snapshotOf: (outcome: UpstreamOutcome<T>, sentAtMs: number) => Snapshot | undefined;
}

/** How a write ended. */
type WriteOutcome<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** It surely did not happen. */
  | OwnFailure
  /** It may have happened; with the status of the response that was not clear, if there was one. */
  | { readonly kind: 'unknown'; readonly status: number | undefined };

/** The pauses before further tries where there was no connection. */
const PAUSES_MS = [100, 300, 1_000];
/** Max wait of a response for the announcement of the write to other replicas. */
const ANNOUNCING_MS = 500;

/** Sends the writes of one caller. They go before its reads, and one that may have happened is never sent again. */
export class WriteSender {
  readonly #parts: WriteParts;

  constructor(parts: WriteParts) {
    this.#parts = parts;
  }

  /**
   * Sends a write, and sends it again only where it surely did not happen: after a 429, and where there was no connection.
   * Rejects with a PetqlError where petql refuses it.
   */
  async send<T>(write: Write<T>, request: CallerRequest): Promise<WriteOutcome<T>> {
    const pausesMs = PAUSES_MS.values();
    const waitingSinceMs = this.#parts.clock.elapsed();
    for (;;) {
      const { outcome, sent } = await this.#sendInLine(write, request, waitingSinceMs);
      if (outcome.kind === 'ok') return outcome;
      if (mayHaveHappened(outcome, sent)) {
        const status = 'status' in outcome ? outcome.status : undefined;
        this.#logUnknown(write.operation, request.id, outcome, status);
        return { kind: 'unknown', status };
      }

      // The line pauses the key, and lets the write wait where there is time.
      if (outcome.kind === 'rate-limited') continue;
      const pauseMs = sent ? Infinity : (pausesMs.next().value ?? Infinity);
      if (this.#parts.clock.elapsed() + pauseMs > request.deadlineMs) return outcome;
      await pause(pauseMs);
    }
  }

  /** Warns for proven keys alone: anybody can make up keys, and fill the log with them while the upstream fails. */
  #logUnknown(
    operation: UpstreamOperation,
    requestId: string,
    failure: UpstreamFailure,
    status: number | undefined,
  ): void {
    const { log, quota } = this.#parts;
    const details = { request: requestId, call: operation, status, ...failureDetails(failure) };
    const message = 'a write had no clear response: it may have happened';
    if (quota.isProven) log.warn(details, message);
    else log.debug?.(details, message);
  }

  /** Makes one try, in the place of the first one. Rejects where it is not sent. */
  async #sendInLine<T>(write: Write<T>, request: CallerRequest, waitingSinceMs: number): Promise<UpstreamAnswer<T>> {
    const { line } = this.#parts;
    const call = new WriteCall(write.operation, request, waitingSinceMs, () => this.#call(write, request));
    const signal = request.signal();
    const onAbort = () => line.abort(call);
    signal?.addEventListener('abort', onAbort, { once: true });
    line.write(call);
    try {
      return await call.result.promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Sends the call. Reads that begin after a write see it, since this is before the line lets anything else through. */
  async #call<T>(write: Write<T>, request: CallerRequest): Promise<UpstreamAnswer<T>> {
    const { quota, petApi, clock, cache, reads } = this.#parts;
    const sentAtMs = clock.elapsed();
    const onSent = () => {
      request.upstreamCalls += 1;
    };
    const answer = await write.send(petApi, { apiKey: quota.apiKey, trace: request.trace, onSent });
    const { meaning, outcome, sent } = answer;
    const snapshot = write.snapshotOf(outcome, sentAtMs);
    const isClear = outcome.kind !== 'ok' && !mayHaveHappened(outcome, sent);
    if (isClear && !snapshot) return answer;

    const isShared = meaning === 'accepted' || quota.isProven;
    const announced = reads.invalidate({ isCertain: outcome.kind === 'ok', isShared });
    if (snapshot) cache.storeCreated(snapshot);
    if (announced) await waitAtMost(announced, ANNOUNCING_MS);
    return answer;
  }
}
