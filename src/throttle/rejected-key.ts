import type { PetqlError } from '../errors.ts';

/** What petql remembers of a 401 for the API key of one caller. */
export interface RejectedKey {
  /** Returns the error of every call while the key is rejected without one; undefined when it may be tried. */
  error(): PetqlError | undefined;
  /** Records that the upstream has accepted the key. */
  accept(): void;
  /** Records that the upstream has rejected the key with 401, and not because of a ban. */
  reject(): void;
}
