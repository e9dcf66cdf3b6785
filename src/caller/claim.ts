import type { CreateOutcome } from './created.ts';

/** The right to send a creation, which only one of all that submit it has at a time. */
export interface Claim {
  /** Writes down that it is sent. Returns why it may not be, or undefined; never rejects. */
  begin(): Promise<Error | undefined>;
  /** Writes down what came of it. */
  settle(outcome: CreateOutcome): Promise<void>;
  /** It did not happen: whoever comes next may send it. */
  release(): Promise<void>;
}

/** Of a creation that nobody else can mean. */
export const UNSHARED: Claim = {
  begin: () => Promise.resolve(undefined),
  settle: () => Promise.resolve(),
  release: () => Promise.resolve(),
};
