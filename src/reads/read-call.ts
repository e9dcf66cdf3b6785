import type { ServeStale } from '../throttle/admission.ts';
import type { LineCall } from '../throttle/line-call.ts';
import type { Refusal } from '../throttle/refusal.ts';
import type { UpstreamAnswer } from '../upstream/outcome.ts';
import { isList } from '../pets/read-key.ts';
import type { CallKey } from '../pets/read-key.ts';
import type { Snapshot } from '../pets/snapshot.ts';
import type { PendingReads } from './pending-reads.ts';
import type { ReadSender } from './read-sender.ts';
import type { Flight, ReadWaiter } from './read-waiter.ts';

/** A call of the plan, as it stands in the line. */
export class ReadCall implements LineCall<ReadWaiter, UpstreamAnswer<Snapshot>> {
  readonly kind = 'read';
  readonly key: CallKey;
  readonly claims: readonly ReadWaiter[];
  readonly waitingSinceMs: number;
  readonly isRetry: boolean;
  readonly #sender: ReadSender;
  readonly #pending: PendingReads;
  /** Set once it is sent. */
  #flight: Flight | undefined;

  constructor(
    sender: ReadSender,
    pending: PendingReads,
    { key, claims, waitingSinceMs }: Pick<ReadCall, 'claims' | 'key' | 'waitingSinceMs'>,
  ) {
    this.#sender = sender;
    this.#pending = pending;
    this.key = key;
    this.claims = claims;
    this.waitingSinceMs = waitingSinceMs;
    this.isRetry = sender.isRetry(key);
  }

  get name(): string {
    return this.key;
  }

  get outageKind(): string {
    return isList(this.key) ? this.key : 'pet';
  }

  refuse(waiter: ReadWaiter, refusal: Refusal): void {
    this.#pending.refuse(waiter, refusal);
  }

  serveStale(waiter: ReadWaiter, reason: ServeStale['reason']): void {
    this.#pending.serveStale(waiter, waiter.failed ? 'UPSTREAM_FAILED' : reason);
  }

  send(payer: ReadWaiter): Promise<UpstreamAnswer<Snapshot>> {
    this.#flight = this.#sender.depart(this, payer);
    return this.#sender.send(this.#flight);
  }

  receive(answer: UpstreamAnswer<Snapshot>): void {
    if (this.#flight) this.#sender.receive(this.#flight, answer);
  }

  fail(error: unknown): void {
    this.#sender.fail(this.#flight, error);
  }
}
