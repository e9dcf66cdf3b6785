/*
 * The rules for the submits of one idempotency key, written once: histories of real processes (check-writes.ts) and the records of
 * the explorer are held to them. A store that has lost the record excuses the first two.
 */

/** One idempotency key adds one pet. */
export function addedProblem(times: number): string | undefined {
  return times > 1 ? `added ${times} times` : undefined;
}

/** All submits that get a pet get the same one. */
export function outcomeProblem(ids: ReadonlySet<string>): string | undefined {
  return ids.size > 1 ? `created as ${[...ids].join(' and ')}` : undefined;
}

/** A pet that a client gets is in the store. */
export function storedProblem(id: string, stored: readonly { readonly id: string }[]): string | undefined {
  return stored.some((pet) => pet.id === id) ? undefined : `created as ${id}, which is not in the store`;
}
