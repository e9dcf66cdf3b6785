import { execute } from 'graphql';
import type { DocumentNode, ExecutionArgs, ExecutionResult } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { ReadsAndWrites, RequestContext } from '../../caller/request-context.ts';
import type { CheckedOptions } from '../../settings/settings.ts';
import type { ReadKey } from '../../pets/read-key.ts';
import type { ResolverContext } from '../../schema/builder.ts';
import { schema } from '../../schema/schema.ts';
import { graphqlError } from '../errors.ts';
import { hasNothing } from '../http/result-response.ts';
import type { DryRun } from '../operation.ts';
import { stateOf } from '../request-state.ts';
import type { RequestState, ServerContext } from '../request-state.ts';
import { inexactIdError } from './exact-ids.ts';
import { limitExceeded } from './limit-exceeded.ts';
import { maxCalls, measureDocument } from './document-measure.ts';

/** Errors of one request's variables; each shows a value. */
const MAX_COERCION_ERRORS = 5;

/** Executes operations. One that may cost too many calls is first executed without an upstream, to count them. */
export function useExecution({ maxUpstreamCalls, introspection, clock }: CheckedOptions): Plugin<ServerContext> {
  const known = new WeakMap<DocumentNode, MaxCalls>();
  return {
    onExecute({ args, setExecuteFn }) {
      const state = stateOf(args.contextValue);
      // graphql-js itself, whose errors name the variable that they are about.
      setExecuteFn((given: ExecutionArgs) =>
        run({ ...given, hideSuggestions: !introspection, options: { maxCoercionErrors: MAX_COERCION_ERRORS } }, state),
      );
    },
  };

  async function run(args: ExecutionArgs, state: RequestState): Promise<ExecutionResult> {
    const { context } = state;
    if (!context) throw new Error('an operation has no request context');
    const inexact = inexactIdError(args);
    if (inexact) return { errors: [graphqlError(inexact)] };

    const most = maxCallsOf(args.document);
    if (most.all <= maxUpstreamCalls && !context.isDryRun) return recordUsage(await execute(args), state, context);

    const { wanted, result: dryResult } = await dryExecute(args);
    if (!('data' in dryResult)) return dryResult;
    const upstreamCalls = context.maxCalls(wanted) + most.nested;
    if (upstreamCalls > maxUpstreamCalls) {
      return { errors: [graphqlError(limitExceeded('upstreamCalls', maxUpstreamCalls, upstreamCalls))] };
    }

    if (!context.isDryRun) return recordUsage(await execute(args), state, context);
    const { reads, writes } = wanted;
    if (context.keyError && reads.length + writes > 0) return { errors: [graphqlError(context.keyError)] };
    state.usage = { ...context.usage, dryRun: await dryRunOf(upstreamCalls, writes, context) };
    return dryResult;
  }

  async function dryRunOf(upstreamCalls: number, writes: number, context: RequestContext): Promise<DryRun> {
    const { waitMs, window } = await context.waitFor(upstreamCalls);
    const fitsAt = new Date(clock.now() + waitMs).toISOString();
    return { upstreamCalls, writes, fits: waitMs === 0, fitsAt, waitMs: Math.ceil(waitMs), window };
  }

  function maxCallsOf(document: DocumentNode): MaxCalls {
    const before = known.get(document);
    if (before) return before;
    const { uses, nested } = measureDocument(document, schema);
    const most = { all: maxCalls(uses), nested: maxCalls(nested) };
    known.set(document, most);
    return most;
  }
}

/** The maximum of upstream calls that an operation of a document can need, with any variables. */
interface MaxCalls {
  readonly all: number;
  /** Those for reads that depend on the result of another one, which a dry run does not have. */
  readonly nested: number;
}

/**
 * Executes an operation without an upstream and collects the reads and writes of its resolvers. Fragments, `@skip`,
 * variables and defaults count as they do when it runs. It does not come to reads that depend on the result of another one.
 *
 * @returns the reads and writes, and a result in which every pet is null, with the errors of fields that would fail at once.
 */
async function dryExecute(args: ExecutionArgs): Promise<{ wanted: ReadsAndWrites; result: ExecutionResult }> {
  const reads: ReadKey[] = [];
  let writes = 0;
  const contextValue: ResolverContext = {
    pets: {
      read(key: ReadKey) {
        reads.push(key);
        return null;
      },
      write() {
        writes += 1;
        return null;
      },
      readQuota: () => Promise.resolve(null),
    },
  };
  const result = await execute({ ...args, contextValue });
  return { wanted: { reads, writes }, result };
}

/** Returns the result, or the error of a key that the upstream does not accept. */
function recordUsage(result: ExecutionResult, state: RequestState, context: RequestContext): ExecutionResult {
  // The variables were wrong.
  if (!('data' in result)) return result;

  const { keyError } = context;
  if (keyError && hasKeyErrorOnly(result, keyError)) return { errors: [graphqlError(keyError)] };
  state.usage = context.usage;
  return result;
}

/** Whether nothing ran since the upstream does not accept the key: HTTP 401 then. */
function hasKeyErrorOnly(result: ExecutionResult, keyError: Error): boolean {
  return hasNothing(result) && (result.errors ?? []).every(({ originalError }) => originalError === keyError);
}
