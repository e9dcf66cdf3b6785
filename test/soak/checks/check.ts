import type { Operation } from '../operation.ts';
import type { Tally } from '../tally.ts';

/** Looks at what happened, and knows nothing of how petql works. */
export interface Check {
  readonly tallies: readonly Tally[];
  /** An operation is over. Nothing of it need be kept. */
  see?(operation: Operation): void;
  /** All is over. */
  finish?(): void;
}
