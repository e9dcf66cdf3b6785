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

/** A write that is to get a permit. */
export interface WriteCall {
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
