import type { CallerRequest } from '../common/caller-request.ts';
import type { UpstreamOperation } from '../common/events.ts';
import type { LineCall, LineClaim } from '../line/line-call.ts';
import type { Refusal } from '../line/refusal.ts';
import type { UpstreamAnswer } from '../upstream/outcome.ts';

/** One try of a write. It stands in the line until it is sent, its deadline or its abort; the first end counts. */
export class WriteCall<T> implements LineCall<WriteCall<T>, UpstreamAnswer<T>>, LineClaim {
  readonly kind = 'write';
  readonly isRetry = false;
  readonly isRefresh = false;
  readonly claims: readonly WriteCall<T>[] = [this];
  readonly name: UpstreamOperation;
  readonly operation: UpstreamOperation;
  readonly isList = false;
  readonly shownInput = undefined;
  readonly request: CallerRequest;
  readonly waitingSinceMs: number;
  /** Sends the call, which has its permit. */
  readonly send: () => Promise<UpstreamAnswer<T>>;
  /** Resolves once the call is settled. Rejects where it was not sent. */
  readonly result = Promise.withResolvers<UpstreamAnswer<T>>();

  constructor(name: UpstreamOperation, request: CallerRequest, waitingSinceMs: number, send: WriteCall<T>['send']) {
    this.name = name;
    this.operation = name;
    this.request = request;
    this.waitingSinceMs = waitingSinceMs;
    this.send = send;
  }

  refuse(_claim: WriteCall<T>, refusal: Refusal): void {
    this.result.reject(refusal.error());
  }

  /** A write is no refresh. */
  serveStale(): void {}

  receive(answer: UpstreamAnswer<T>): void {
    this.result.resolve(answer);
  }

  fail(error: unknown): void {
    this.result.reject(error);
  }
}
