import { execute } from 'graphql';
import type { ExecutionArgs, ExecutionResult } from 'graphql';
import type { Demand } from '../caller/demand.ts';
import type { ResolverContext } from '../schema/builder.ts';

/** What an operation would ask the caller's pets for. */
export interface Wanted {
  readonly demands: readonly Demand[];
  readonly creations: number;
}

/**
 * Runs an operation without anything behind it, and notes what its resolvers ask for. So fragments, `@skip`, variables,
 * defaults and merged fields count just as they do when it runs, and arguments that cannot be are found: nothing of that is
 * known in a second place. It holds because no resolver asks for a thing that depends on what another one got.
 *
 * @returns what is wanted, and the result with the errors of fields that would fail at once; its data mean nothing.
 */
export async function findWanted(args: ExecutionArgs): Promise<{ wanted: Wanted; result: ExecutionResult }> {
  const demands: Demand[] = [];
  let creations = 0;
  const contextValue: ResolverContext = {
    pets: {
      list(status) {
        demands.push({ kind: 'listing', listing: status ?? 'all' });
        return [];
      },
      byId(id) {
        demands.push({ kind: 'animal', id });
        return null;
      },
      create() {
        creations += 1;
        return Promise.resolve({ refusal: { code: 'DRY_RUN', message: 'Nothing was sent.' } });
      },
    },
    // The field that shows it may be null, and costs nothing.
    budget: () => Promise.resolve(null as never),
  };
  const result = await execute({ ...args, contextValue });
  return { wanted: { demands, creations }, result };
}
