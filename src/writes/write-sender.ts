import type { Clock } from '../clock.ts';
import type { UpstreamOperation } from '../events.ts';
import type { KeyLog } from '../log.ts';
import type { PetCache } from '../reads/cache/pet-cache.ts';
import type { RequestTerms } from '../reads/read-request.ts';
import type { CallerLists } from '../reads/cache/caller-lists.ts';
import type { Snapshot } from '../pets/snapshot.ts';
import type { CallLine } from '../throttle/call-line.ts';
import type { ToldTime } from '../throttle/line-call.ts';
import { waitAtMost, pause } from '../time-limit.ts';
import { failureDetails } from '../upstream/outcome.ts';
import type { UpstreamAnswer, UpstreamFailure } from '../upstream/outcome.ts';
import type { PetApi, UpstreamCall } from '../pets/pet-api.ts';
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
  readonly told: ToldTime;
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
  readonly line: CallLine;
  readonly cache: PetCache;
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
      const { outcome, sent } = await this.#sendInLine(write, request);
      if (outcome.kind === 'ok') return outcome;
      if (mayHaveHappened(outcome, sent)) {
        const status = 'status' in outcome ? outcome.status : undefined;
        this.#logUnknown(write.operation, request.id, outcome, status);
        return { kind: 'unknown', status };
      }

      // The line pauses the key, and lets the write wait where there is time.
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

  /** Warns for proven keys alone: anybody can make up keys, and fill the log with them while the upstream fails. */
  #logUnknown(
    operation: UpstreamOperation,
    requestId: string,
    failure: UpstreamFailure,
    status: number | undefined,
  ): void {
    const { log, line } = this.#options;
    const details = { request: requestId, call: operation, status, ...failureDetails(failure) };
    const message = 'a write had no clear response: it may have happened';
    if (line.isProven()) log.warn(details, message);
    else log.debug?.(details, message);
  }

  /** Makes one try. Rejects where it is not sent. */
  async #sendInLine<T>(write: Write<T>, request: WriteRequest): Promise<UpstreamAnswer<T>> {
    const { clock, line } = this.#options;
    const { visitor, isBackground, deadlineMs } = request;
    const startedAtMs = clock.elapsed();
    let answer: UpstreamAnswer<T> | undefined;
    const refusal = await line.write({
      name: write.operation,
      request,
      visitor,
      isBackground,
      deadlineMs,
      signal: request.signal(),
      send: async () => {
        request.onWaited(clock.elapsed() - startedAtMs);
        answer = await this.#call(write, request);
        return answer;
      },
    });
    if (answer) return answer;

    if (!refusal) throw new Error('a write has no response');
    const error = refusal.error();
    request.onWaited(clock.elapsed() - startedAtMs, error.code);
    throw error;
  }

  /** Sends the call. Reads that begin after a write see it, since this is before the line lets anything else through. */
  async #call<T>(write: Write<T>, request: WriteRequest): Promise<UpstreamAnswer<T>> {
    const { apiKey, petApi, clock, line, cache } = this.#options;
    const sentAtMs = clock.elapsed();
    const answer = await write.send(petApi, { apiKey, trace: request.trace, onSent: request.onBilled });
    const { outcome, sent } = answer;
    if (outcome.kind !== 'ok' && !mayHaveHappened(outcome, sent)) return answer;

    const announced = this.invalidate(outcome.kind === 'ok' || line.isProven());
    if (outcome.kind === 'ok') cache.store(write.snapshotOf(outcome.value, sentAtMs));
    await waitAtMost(announced, ANNOUNCING_MS);
    return answer;
  }
}
