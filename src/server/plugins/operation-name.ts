import { getOperationAST } from 'graphql';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import type { ServerContext } from '../request-state.ts';

/** Clients choose the names of their operations. */
const MAX_OPERATION_NAME_LENGTH = 64;

/** Notes the type and the name of each operation. */
export function useOperationName(): Plugin<ServerContext> {
  return {
    onParse() {
      return ({ result, context }) => {
        if (result === null || result instanceof Error) return;
        const { params, state } = context as YogaInitialContext & ServerContext;
        const operation = getOperationAST(result, params.operationName);
        const name = operation?.name?.value.slice(0, MAX_OPERATION_NAME_LENGTH);
        if (operation) state.operation = { type: operation.operation, name };
      };
    },
  };
}
