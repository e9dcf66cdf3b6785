import type { CallerRequest } from '../common/caller-request.ts';
import type { UpstreamOperation } from '../common/events.ts';
import { pause, waitAtMost } from '../common/time-limit.ts';
import type { LineCall, RequestClaim } from '../line/line-call.ts';
import type { Refusal } from '../line/refusal.ts';
import type { PetApi, UpstreamCall } from '../pets/pet-api.ts';
import type { Snapshot } from '../pets/snapshot.ts';
import type { ReadParts } from '../reads/pending-reads.ts';
import type { PetReads } from '../reads/pet-reads.ts';
import { failureDetails } from '../upstream/outcome.ts';
import type { OwnFailure, UpstreamAnswer, UpstreamFailure } from '../upstream/outcome.ts';
import { mayHaveHappened } from './unknown-outcome.ts';
import { ANNOUNCING_MS, CONNECT_PAUSES_MS } from '../common/call-times.ts';

/** What the writes of one caller are made of. */
export interface WriteParts extends Pick<ReadParts, 'cache' | 'clock' | 'line' | 'log' | 'petApi' | 'quota'> {
  readonly reads: PetReads;
}

/** One upstream operation that changes the pet store. */
export interface Write<T> {
  /** Its name in the log. */
  readonly operation: UpstreamOperation;
  readonly send: (petApi: PetApi, call: UpstreamCall) => Promise<UpstreamAnswer<T>>;
  /** Returns what its success shows of the pet store. A failure shows nothing: it must not empty the cache. */
  readonly snapshotOf: (value: T, sentAtMs: number) => Snapshot;
}

/** How a write ended. */
type WriteOutcome<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** It surely did not happen. */
  | OwnFailure
  /** It may have happened; with the status of the response that was not clear, if there was one. */
  | { readonly kind: 'unknown'; readonly status: number | undefined };

/**
 * One write, from its place in the line to its outcome: it stands in the line before the reads of people, is sent, and stands in its old
 * place again only where it surely did not happen: after a 429, and where there was no connection. The first end counts.
 */
export class WriteCall<T> implements LineCall<WriteCall<T>, UpstreamAnswer<T>>, RequestClaim {
  readonly kind = 'write';
  readonly isRetry = false;
  readonly isRefresh = false;
  readonly isList = false;
  readonly shownInput = undefined;
  readonly claims: readonly WriteCall<T>[] = [this];
  readonly request: CallerRequest;
  /** Its arrival, through all tries: by this it has its place. */
  readonly waitingSinceMs: number;
  readonly #parts: WriteParts;
  readonly #write: Write<T>;
  readonly #pausesMs = CONNECT_PAUSES_MS.values();
  readonly #ended = Promise.withResolvers<WriteOutcome<T>>();

  constructor(parts: WriteParts, write: Write<T>, request: CallerRequest) {
    this.#parts = parts;
    this.#write = write;
    this.request = request;
    this.waitingSinceMs = parts.clock.elapsed();
  }

  get name(): UpstreamOperation {
    return this.#write.operation;
  }

  get operation(): UpstreamOperation {
    return this.#write.operation;
  }

  /** Stands in the line until it has an outcome. Rejects with a PetqlError where petql refuses it. */
  async outcome(): Promise<WriteOutcome<T>> {
    const { line } = this.#parts;
    const signal = this.request.signal();
    const onAbort = () => line.abort(this);
    signal?.addEventListener('abort', onAbort, { once: true });
    line.write(this);
    try {
      return await this.#ended.promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  refuse(_claim: WriteCall<T>, refusal: Refusal): void {
    this.#ended.reject(refusal.error());
  }

  /** A write is no refresh. */
  serveStale(): void {}

  /** Sends it. Reads that begin after a write see it, since this is before the line lets anything else through. */
  async send(): Promise<UpstreamAnswer<T>> {
    const { quota, petApi, clock, cache, reads } = this.#parts;
    const { request } = this;
    const sentAtMs = clock.elapsed();
    const onSent = () => {
      request.upstreamCalls += 1;
    };
    const answer = await this.#write.send(petApi, { apiKey: quota.apiKey, trace: request.trace, onSent });
    const { meaning, outcome, sent } = answer;
    if (outcome.kind !== 'ok' && !mayHaveHappened(outcome, sent)) return answer;

    const isShared = meaning === 'accepted' || quota.isProven;
    const announced = reads.invalidate({ isCertain: outcome.kind === 'ok', isShared });
    if (outcome.kind === 'ok') cache.storeCreated(this.#write.snapshotOf(outcome.value, sentAtMs));
    if (announced) await waitAtMost(announced, ANNOUNCING_MS);
    return answer;
  }

  /** Takes the response: it ends the write, or lets it stand in the line again. */
  receive({ outcome, sent }: UpstreamAnswer<T>): void {
    // 1. It happened, or may have happened.
    if (outcome.kind === 'ok') return this.#ended.resolve(outcome);
    if (mayHaveHappened(outcome, sent)) return this.#endUnknown(outcome);

    // 2. The line pauses the key after a 429, and lets the write wait where there is time.
    const { clock, line } = this.#parts;
    if (outcome.kind === 'rate-limited') return line.write(this);

    // 3. There was no connection, or the upstream did not take it.
    const pauseMs = sent ? Infinity : (this.#pausesMs.next().value ?? Infinity);
    if (clock.elapsed() + pauseMs > this.request.deadlineMs) return this.#ended.resolve(outcome);
    void pause(pauseMs).then(() => line.write(this));
  }

  /** A defect of petql, or a key that the upstream rejects. */
  fail(error: unknown): void {
    this.#ended.reject(error);
  }

  /** Warns for proven keys alone: anybody can make up keys, and fill the log with them while the upstream fails. */
  #endUnknown(failure: UpstreamFailure): void {
    const { log, quota } = this.#parts;
    const status = 'status' in failure ? failure.status : undefined;
    const details = { request: this.request.id, call: this.operation, status, ...failureDetails(failure) };
    const message = 'a write had no clear response: it may have happened';
    if (quota.isProven) log.warn(details, message);
    else log.debug?.(details, message);
    this.#ended.resolve({ kind: 'unknown', status });
  }
}
