import type { Clock } from '../clock.ts';
import { waitAtMost } from '../time-limit.ts';
import type { UpstreamAnswer } from '../upstream/outcome.ts';
import type { Call, WriteCall, WriteResult } from './call.ts';
import type { Decisions } from './decisions.ts';
import type { GivenReason, Refusal } from './refusal.ts';

interface WaitingWritesOptions {
  readonly clock: Clock;
  readonly decisions: Pick<Decisions, 'logRefusal'>;
  /** Returns how many permits are granted and unused: they are for the first writes. */
  readonly permits: () => number;
  /** Settles when the permits that are being taken have come; undefined while none are. */
  readonly taking: () => Promise<void> | undefined;
  /** Returns the minimum wait of a call with `ahead` others before it. */
  readonly waitMs: (ahead: number) => number;
  /** Returns the refusal of a call with `ahead` others before it. */
  readonly refusal: (reason: GivenReason, ahead?: number) => Refusal;
  /** Called when a write was refused at its deadline or its abort. */
  readonly onRefused: () => void;
}

export const MAX_WAITING_WRITES = 1_000;
/** Max wait of a deadline for the account. */
const MAX_STORE_WAIT_MS = 100;

/** The writes of one key that wait for a permit, in order of arrival, and every way in which a wait ends without one. */
export class WaitingWrites {
  readonly #options: WaitingWritesOptions;
  readonly #writes = new Set<WaitingWrite>();

  constructor(options: WaitingWritesOptions) {
    this.#options = options;
  }

  /** How many writes wait. */
  get size(): number {
    return this.#writes.size;
  }

  /** Adds a write. Resolves once it is sent and settled, or refused. */
  add(call: WriteCall): Promise<WriteResult> {
    const { clock, refusal, onRefused } = this.#options;
    const write = new WaitingWrite(call, {
      nowMs: clock.elapsed(),
      onAbort: () => {
        this.#refuse(write, refusal('aborted'));
        onRefused();
      },
      onDeadline: () => void this.#refuseLate(write),
    });
    this.#writes.add(write);
    return write.result;
  }

  /** Takes the first write, which has a permit. */
  takeFirst(): Call | undefined {
    const [write] = this.#writes;
    if (!write) return undefined;
    this.#writes.delete(write);
    write.endWait();
    return write;
  }

  /** Refuses the writes whose wait would pass their deadline. */
  refuseHopeless(): void {
    const { clock, permits, waitMs, refusal } = this.#options;
    // The first writes have a permit, and the last one waits longest.
    const last = this.#writes.size - permits() - 1;
    if (last < 0) return;

    const nowMs = clock.elapsed();
    const latestMs = nowMs + waitMs(last);
    const isHopeful = [...this.#writes].every(({ deadlineMs }) => latestMs <= deadlineMs);
    if (isHopeful) return;

    let ahead = -permits();
    for (const write of this.#writes) {
      const ownWaitMs = ahead < 0 ? 0 : waitMs(ahead);
      if (ownWaitMs > 0 && nowMs + ownWaitMs > write.deadlineMs) this.#refuse(write, refusal('plan', ahead));
      else ahead += 1;
    }
  }

  /** Refuses all writes. */
  refuseAll(refusal: Refusal): void {
    for (const write of this.#writes) this.#refuse(write, refusal);
  }

  /** Ends all waits by a defect of petql. */
  failAll(error: unknown): void {
    for (const write of this.#writes) write.fail(error);
    this.#writes.clear();
  }

  /** Refuses a write at its deadline, unless it gets a permit in this moment. */
  async #refuseLate(write: WaitingWrite): Promise<void> {
    const { permits, taking, waitMs, refusal, onRefused } = this.#options;
    // A permit may be about to be granted, or a job about to start.
    await waitAtMost(Promise.allSettled([taking()]), MAX_STORE_WAIT_MS);
    if (!this.#writes.has(write)) return;

    const ahead = [...this.#writes].indexOf(write) - permits();
    if (ahead < 0) return;

    this.#refuse(write, refusal(waitMs(ahead) > 0 ? 'plan' : 'late', ahead));
    onRefused();
  }

  #refuse(write: WaitingWrite, refusal: Refusal): void {
    this.#writes.delete(write);
    this.#options.decisions.logRefusal(refusal, write.requestId);
    write.refuse(refusal);
  }
}

interface WaitOptions {
  readonly nowMs: number;
  readonly onAbort: () => void;
  readonly onDeadline: () => void;
}

/** A write that waits for a permit, until its deadline or its abort. Its first end counts. */
class WaitingWrite implements Call {
  readonly kind = 'write';
  readonly isRetry = false;
  readonly deadlineMs: number;
  readonly waitingSinceMs: number;
  readonly #call: WriteCall;
  readonly #result = Promise.withResolvers<WriteResult>();
  readonly #onAbort: () => void;
  readonly #deadline: NodeJS.Timeout;

  constructor(call: WriteCall, { nowMs, onAbort, onDeadline }: WaitOptions) {
    const { deadlineMs, signal } = call;
    this.#call = call;
    this.deadlineMs = deadlineMs;
    this.waitingSinceMs = nowMs;
    this.#onAbort = onAbort;
    this.#deadline = setTimeout(onDeadline, Math.max(0, deadlineMs - nowMs));
    signal?.addEventListener('abort', onAbort, { once: true });
  }

  get name(): string {
    return this.#call.name;
  }

  get requestId(): string {
    return this.#call.id;
  }

  get result(): Promise<WriteResult> {
    return this.#result.promise;
  }

  /** Ends the wait: neither deadline nor abort concerns a call that is sent. */
  endWait(): void {
    clearTimeout(this.#deadline);
    this.#call.signal?.removeEventListener('abort', this.#onAbort);
  }

  send(): Promise<UpstreamAnswer<unknown>> | undefined {
    const sending = this.#call.send();
    if (!sending) this.#result.resolve({ kind: 'unused' });
    return sending;
  }

  receive(): void {
    this.#result.resolve({ kind: 'sent' });
  }

  refuse(refusal: Refusal): void {
    this.endWait();
    this.#result.resolve(refusal);
  }

  fail(error: unknown): void {
    this.endWait();
    this.#result.reject(error);
  }
}
