import type { CallerRequest } from '../caller-request.ts';
import type { LineAnswer, LineCall, LineClaim } from './line-call.ts';
import type { Refusal } from './refusal.ts';
import type { Visitor } from './visitors.ts';

/** A write that is to get a permit. */
export interface WriteCall {
  /** What it does, for the log. */
  readonly name: string;
  readonly request: CallerRequest;
  readonly visitor: Visitor;
  readonly isBackground: boolean;
  /** By `clock.elapsed()`. */
  readonly deadlineMs: number;
  /** Aborts the wait. */
  readonly signal?: AbortSignal | undefined;
  send(): Promise<LineAnswer>;
}

/** A write in the line. It waits until it is sent, its deadline or its abort; the first end counts. */
export class WaitingWrite implements LineCall<WaitingWrite>, LineClaim {
  readonly kind = 'write';
  readonly isRetry = false;
  readonly isRefresh = false;
  readonly claims: readonly WaitingWrite[] = [this];
  readonly waitingSinceMs: number;
  readonly #call: WriteCall;
  readonly #result = Promise.withResolvers<Refusal | undefined>();

  constructor(call: WriteCall, nowMs: number) {
    this.#call = call;
    this.waitingSinceMs = nowMs;
  }

  get name(): string {
    return this.#call.name;
  }

  get outageKind(): string {
    return this.#call.name;
  }

  get request(): CallerRequest {
    return this.#call.request;
  }

  get visitor(): Visitor {
    return this.#call.visitor;
  }

  get isBackground(): boolean {
    return this.#call.isBackground;
  }

  get deadlineMs(): number {
    return this.#call.deadlineMs;
  }

  /** Resolves once the call is settled; with a refusal where it was not sent. */
  get result(): Promise<Refusal | undefined> {
    return this.#result.promise;
  }

  refuse(_claim: WaitingWrite, refusal: Refusal): void {
    this.#result.resolve(refusal);
  }

  /** A write is no refresh. */
  serveStale(): void {}

  send(): Promise<LineAnswer> {
    return this.#call.send();
  }

  receive(): void {
    this.#result.resolve(undefined);
  }

  fail(error: unknown): void {
    this.#result.reject(error);
  }
}
