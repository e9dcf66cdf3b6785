import type { UpstreamAnswer } from '../upstream/outcome.ts';
import type { Refusal } from './refusal.ts';

/** A call that gets a permit. */
export interface Call<T = unknown> {
  readonly kind: 'read' | 'write';
  /** What it reads or makes, for the log. */
  readonly name: string;
  /** The request that it is billed to. */
  readonly requestId: string | undefined;
  readonly isRetry: boolean;
  /** By `clock.elapsed()`. */
  readonly waitingSinceMs: number;
  /** Returns undefined if there is nothing left to send: the permit is refunded. */
  readonly send: () => Promise<UpstreamAnswer<T>> | undefined;
  /** Takes the response, once the permit is settled. */
  receive(answer: UpstreamAnswer<T>): void;
  /** Takes what only a defect of petql throws. */
  readonly fail: (error: unknown) => void;
}

export type WriteResult =
  /** The call was sent, and is settled. */
  | { readonly kind: 'sent' }
  /** `send` returned undefined. */
  | { readonly kind: 'unused' }
  | Refusal;

export interface WriteRequest {
  /** What it does, for the log. */
  readonly name: Call['name'];
  /** In the log. */
  readonly id: string;
  /** By `clock.elapsed()`. */
  readonly deadlineMs: number;
  /** Aborts the wait. */
  readonly signal?: AbortSignal | undefined;
  send: Call['send'];
}

interface WaiterOptions {
  readonly nowMs: number;
  readonly onAbort: () => void;
  readonly onDeadline: () => void;
}

/** A write that waits for a permit, until its deadline or its abort. Its first end counts. */
export class Waiter implements Call {
  readonly kind = 'write';
  readonly isRetry = false;
  readonly deadlineMs: number;
  readonly waitingSinceMs: number;
  readonly #request: WriteRequest;
  readonly #result = Promise.withResolvers<WriteResult>();
  readonly #onAbort: () => void;
  readonly #deadline: NodeJS.Timeout;

  constructor(request: WriteRequest, { nowMs, onAbort, onDeadline }: WaiterOptions) {
    const { deadlineMs, signal } = request;
    this.#request = request;
    this.deadlineMs = deadlineMs;
    this.waitingSinceMs = nowMs;
    this.#onAbort = onAbort;
    this.#deadline = setTimeout(onDeadline, Math.max(0, deadlineMs - nowMs));
    signal?.addEventListener('abort', onAbort, { once: true });
  }

  get name(): string {
    return this.#request.name;
  }

  get requestId(): string {
    return this.#request.id;
  }

  get result(): Promise<WriteResult> {
    return this.#result.promise;
  }

  /** Ends the wait: neither deadline nor abort concerns a call that is sent. */
  leave(): void {
    clearTimeout(this.#deadline);
    this.#request.signal?.removeEventListener('abort', this.#onAbort);
  }

  send(): Promise<UpstreamAnswer<unknown>> | undefined {
    const sending = this.#request.send();
    if (!sending) this.#result.resolve({ kind: 'unused' });
    return sending;
  }

  receive(): void {
    this.#result.resolve({ kind: 'sent' });
  }

  refuse(refusal: Refusal): void {
    this.leave();
    this.#result.resolve(refusal);
  }

  fail(error: unknown): void {
    this.leave();
    this.#result.reject(error);
  }
}
