/**
 * What was begun under a name and what came of it, kept for a day for all that share the store: one in a file or in
 * memory, one in Redis. test/writes holds both to the same behaviour.
 *
 * Every promise rejects with StoreAway where the store cannot be reached or written.
 */
export interface Records {
  /** @param input what is submitted under the name now. */
  find(name: string, input: string): Promise<Kept | undefined>;
  /** Writes that an attempt begins, where nothing is kept under the name. */
  begin(name: string, attempt: Attempt): Promise<Begun>;
  /** Writes what came of it; again where the store has lost it, but never over another attempt. */
  settle(name: string, attempt: Attempt, outcome: string): Promise<void>;
  /** Forgets the attempt, so that the name is free again. */
  release(name: string, attempt: Attempt): Promise<void>;
  close(): Promise<void>;
}

export interface Attempt {
  /** Its own among all attempts there ever are. */
  readonly id: string;
  /** What was submitted: another submit under this name can be told from a repeated one. */
  readonly input: string;
  /** Whoever makes it has settled or released it by then, or is gone; in milliseconds from its beginning. */
  readonly leaseMs: number;
}

export interface Kept {
  /** Whether what was submitted under the name before is the same. */
  readonly isSame: boolean;
  /** Undefined while nothing came of it. */
  readonly outcome: string | undefined;
  /** How long something may still come of it, in milliseconds; 0 where whoever began it is gone. */
  readonly openForMs: number;
}

export type Begun =
  | { readonly kind: 'begun' }
  /** Something is kept under this name. */
  | { readonly kind: 'taken' }
  /** As many are kept as fit. A place is free when the oldest has had its day. */
  | { readonly kind: 'full'; readonly freeInMs: number };

export const RECORDS_LIVE_MS = 86_400_000;
