import type { ExecutionResult, GraphQLError } from 'graphql';
import { getOperationAST } from 'graphql';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import type { Usage } from '../../caller/usage.ts';
import { yogaError } from '../errors.ts';
import { stateOf } from '../request-state.ts';
import type { ServerContext } from '../request-state.ts';

/** Clients choose the names of their operations. */
const MAX_NAME_LENGTH = 64;

/** Notes each operation and its result, and gives the result its status and error codes. */
export function useResults(): Plugin<ServerContext> {
  return {
    onParse() {
      return ({ result, context }) => {
        if (result === null || result instanceof Error) return;
        const { params, state } = context as unknown as YogaInitialContext & ServerContext;
        const operation = getOperationAST(result, params.operationName);
        const name = operation?.name?.value.slice(0, MAX_NAME_LENGTH);
        if (operation) state.operation = { type: operation.operation, name };
      };
    },
    onResultProcess({ result, setResult, serverContext }) {
      const state = stateOf(serverContext);
      state.result = result as ExecutionResult;
      setResult(yogaResult(state.result, state.data));
    },
  };
}

/** Returns what an operation has cost; undefined where nothing ran. */
export function usageOf({ extensions }: ExecutionResult): Usage | undefined {
  return extensions?.['petql'] as Usage | undefined;
}

/** @param json its data as it was written to measure it. */
function yogaResult(result: ExecutionResult, json: string | undefined): ExecutionResult {
  const { errors, extensions } = result;
  const shown = errors ? { ...result, errors: errors.map(yogaError) as GraphQLError[] } : result;
  if (!usageOf(result)) return shown;
  const http = isNotCached(result) ? { status: 504 } : {};
  return {
    ...shown,
    extensions: { ...extensions, http },
    ...(json !== undefined && result.data ? { stringify: withData(json) } : {}),
  };
}

function withData(json: string): (result: ExecutionResult) => string {
  return ({ errors, extensions }) => {
    const shownErrors = errors ? `"errors":${JSON.stringify(errors)},` : '';
    return `{${shownErrors}"data":${json},"extensions":${JSON.stringify(extensions)}}`;
  };
}

/** Whether a request that takes cached data alone got nothing: HTTP 504 then (RFC 9111, section 5.2.1.7). */
function isNotCached(result: ExecutionResult): boolean {
  return hasNothing(result) && (result.errors ?? []).every(({ extensions }) => extensions['code'] === 'NOT_CACHED');
}

/** Whether a result is nothing but errors. */
export function hasNothing({ data, errors = [] }: ExecutionResult): boolean {
  return errors.length > 0 && !Object.values(data ?? {}).some((value) => value !== null);
}
