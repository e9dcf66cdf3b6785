import type { QuotaView } from './quota.ts';

/** The quota of one API key and who used it, as plain JSON. */
export interface KeyReport extends QuotaView {
  /** The hash of the key, as in the log; `petql hash-key` prints it. */
  readonly key: string;
  /** Whether the pet API rejected the key, so that petql makes no call with it for now. */
  readonly isRejected: boolean;
  /** Calls that wait in this process, and those that it made or saved since it began to use the key. */
  readonly queued: number;
  readonly callsMade: number;
  readonly callsSaved: number;
  /** What this process has counted; other replicas have their own. */
  readonly consumers: Consumers;
}

/** What the operations of one name, or of one client, have used. */
export interface Consumer {
  /** As the client gives it; `(unnamed)` without one, `(others)` for those beyond the first hundred of an hour or a day. */
  readonly name: string;
  /** Upstream calls that were billed to it. */
  readonly callsMade: number;
  /** Reads that cost no call. */
  readonly callsSaved: number;
  /** Operations that were RATE_LIMITED. */
  readonly refused: number;
  /** Its part of all calls made, from 0 to 1. */
  readonly share: number;
}

/** Who has used the quota of an API key by this process; who made the most calls first. */
export interface Consumers {
  readonly lastHour: ConsumersOf;
  /** Since midnight UTC. */
  readonly today: ConsumersOf;
}

export interface ConsumersOf {
  readonly operations: readonly Consumer[];
  readonly clients: readonly Consumer[];
}
