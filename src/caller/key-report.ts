import type { Consumers } from './consumers.ts';
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
  /** Of this process. */
  readonly consumers: Consumers;
}
