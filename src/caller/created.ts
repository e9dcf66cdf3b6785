import type { Pet } from '../pet.ts';
import type { WireError } from '../upstream/wire.ts';

/** The animal that was added, or what the upstream finds wrong with it. */
export type Created = { readonly pet: Pet } | { readonly refusal: WireError };

/** What came of a creation that was sent and may have happened, or was refused for what it holds. */
export type CreateOutcome =
  | Created
  /** No clear answer; with the status of the one that there was. */
  | { readonly unknown: { readonly status?: number | undefined } };
