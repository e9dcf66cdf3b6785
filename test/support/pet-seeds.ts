import type { Int64 } from '../../src/int64.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';

/** As pet-api.md has them, PetStatus. */
export const PET_STATUSES = ['available', 'pending', 'sold'] as const;

/** Pets for a sandbox, with the ids 1 and up and each status in turn. */
export function petSeeds(
  count: number,
  statuses: readonly (typeof PET_STATUSES)[number][] = PET_STATUSES,
): NonNullable<SandboxOptions['seeds']> {
  return Array.from({ length: count }, (_, index) => ({
    name: `Pet ${index + 1}`,
    categoryId: '1' as Int64,
    status: statuses[index % statuses.length],
  }));
}
