import { OperationTypeNode, execute } from 'graphql';
import type { ExecutionArgs } from 'graphql';
import type { CheckedOptions } from '../../settings.ts';
import type { ReadKey } from '../../reads/read-key.ts';
import type { ResolverContext } from '../../schema/builder.ts';
import type { RequestContext } from '../request-context.ts';
import type { GatewayResult, RequestState } from '../request-state.ts';
import { limitExceeded } from './limit-exceeded.ts';

/** What an operation would read and write. */
export interface Demands {
  readonly reads: readonly ReadKey[];
  readonly creations: number;
}

/** Of a query's data as JSON. Aliases can show one list a hundred times. */
const MAX_DATA_CHARACTERS = 4_194_304;

/** Errors of one request's variables; each shows a value. */
const MAX_COERCION_ERRORS = 5;

/**
 * Executes an operation: first without an upstream, to count the calls that it can cost.
 *
 * @throws PetqlError where it may cost too many calls.
 */
export async function executeWithin(
  given: ExecutionArgs,
  state: RequestState,
  { maxUpstreamCalls, introspection }: CheckedOptions,
): Promise<GatewayResult> {
  const context = state.context as RequestContext;
  // graphql-js itself, whose errors name the variable that they are about.
  const args = { ...given, hideSuggestions: !introspection, options: { maxCoercionErrors: MAX_COERCION_ERRORS } };
  const { demands, result: dryResult } = await dryExecute(args);
  // The variables were wrong.
  if (!('data' in dryResult)) return dryResult as GatewayResult;
  const upstreamCalls = context.worstCase(demands);
  if (upstreamCalls > maxUpstreamCalls) throw limitExceeded('upstreamCalls', maxUpstreamCalls, upstreamCalls);
  if (context.dryRun) {
    const { reads, creations } = demands;
    if (context.refusal && reads.length + creations > 0) throw context.refusal;
    const dryRun = { upstreamCalls, creations, ...(await context.fit(upstreamCalls)) };
    return { ...dryResult, extensions: { petql: { ...context.usage(), dryRun } } };
  }
  const { data, errors } = await execute(args);
  const extensions = { petql: context.usage() };
  context.countSaved();
  state.data = JSON.stringify(data);
  // What a mutation has done is shown, however long it is.
  if (state.data.length <= MAX_DATA_CHARACTERS || state.operation?.type !== OperationTypeNode.QUERY)
    return { data, ...(errors && { errors }), extensions };
  state.data = 'null';
  return { data: null, errors: [limitExceeded('answer', MAX_DATA_CHARACTERS)], extensions };
}

/**
 * Executes an operation without an upstream and collects the reads and creations of its resolvers. Fragments, `@skip`,
 * variables and defaults count as they do when it runs. No read depends on the result of another one.
 *
 * @returns the demands, and a result in which every pet is null, with the errors of fields that would fail at once.
 */
async function dryExecute(args: ExecutionArgs) {
  const reads: ReadKey[] = [];
  let creations = 0;
  const contextValue: ResolverContext = {
    pets: {
      list(status) {
        reads.push(status ?? 'all');
        return null as never;
      },
      byId(id) {
        reads.push(id);
        return null;
      },
      create() {
        creations += 1;
        return Promise.resolve({ pet: null as never });
      },
    },
    quota: () => Promise.resolve(null as never),
  };
  const result = await execute({ ...args, contextValue });
  return { demands: { reads, creations } satisfies Demands, result };
}
