import type { CallAnswer } from '../common/call-answer.ts';
import type { CallerRequest } from '../common/caller-request.ts';
import type { Claim, ServeStale, WantedCall } from './admission.ts';
import type { Refusal } from './refusal.ts';

/** Who waits in the line. */
export interface RequestClaim extends Claim {
  readonly request: CallerRequest;
}

/** The end of a call, as the line sees it. */
export interface LineAnswer extends CallAnswer {
  readonly status?: number | undefined;
  /** Why it failed, for the log; undefined for a success. */
  readonly failure: object | undefined;
}

/** A call in the line of its API key. */
export interface LineCall<
  Of extends RequestClaim = RequestClaim,
  Answer extends LineAnswer = LineAnswer,
> extends WantedCall<Of> {
  readonly kind: 'read' | 'write';
  /** What it reads or makes, for the log. */
  readonly name: string;
  /** What closes where it fails: a list by its name, `getPet`, or a write. */
  readonly operation: string;
  readonly isList: boolean;
  /** The id of a get whose pet a list of the key has shown within a minute. */
  readonly shownInput: string | undefined;
  /** Whether it is an early retry of a call that failed. */
  readonly isRetry: boolean;
  /** By `clock.elapsed()`. */
  readonly waitingSinceMs: number;
  /** Ends a wait: no call is sent for this claim. */
  refuse(claim: Of, refusal: Refusal): void;
  /** Ends the wait of a claim that is a refresh. */
  serveStale(claim: Of, reason: ServeStale['reason']): void;
  /** Sends the call, which has its permit; the payer's request is billed for it. */
  send(payer: Of): Promise<Answer>;
  /** Takes the response, once the permit is settled. */
  receive(answer: Answer): void;
  /** Takes an error that ends the call: the upstream rejects the key, or a defect of petql. */
  fail(error: unknown): void;
}

/** A write in the line waits for itself. */
export type WaitingWrite = LineCall & RequestClaim;

/** The reads of the key: what they want changes with each response, so the line asks for it each time. */
export interface CallSource {
  /** Ends the reads that no call can answer, or whose calls failed a short while ago. */
  prepare(): void;
  /** Returns the calls that they want now, in their order. */
  calls(): readonly LineCall[];
  /** Records that reads have come or gone: other calls may be wanted. */
  discardPlan(): void;
  /** Asks for a list that no request wants, to find out whether calls work. */
  askForList(): void;
  /**
   * Records that the upstream rejects the key.
   *
   * @param isDropped whether its cached data is deleted.
   */
  recordRejection(isDropped: boolean): void;
  /** Ends every wait by an error that concerns all calls of the key. */
  fail(error: unknown): void;
}
