import { print } from 'graphql';
import type { DocumentNode, ExecutionResult, FormattedExecutionResult, GraphQLError } from 'graphql';
import type { GraphQLParams, YogaServer } from 'graphql-yoga';
import type { ServerKey } from '../gateway-options.ts';
import { givenApiKey } from './api-key.ts';
import { plainError } from './error-answers.ts';
import type { Execute, Operation, TypedText } from './operation.ts';
import { paramsError } from './params-error.ts';
import type { RequestTerms } from './request-terms.ts';

export interface ExecuteOptions {
  /** The steps of an operation, with all that petql adds to each of them. */
  envelop(context: {
    terms: RequestTerms;
    params: GraphQLParams;
  }): ReturnType<YogaServer<object, object>['getEnveloped']>;
  maskError(error: unknown): GraphQLError;
  readonly serverKey: ServerKey | undefined;
}

export function createExecute({ envelop, maskError, serverKey }: ExecuteOptions): Execute {
  const texts = new WeakMap<object, string>();
  return (operation) => executeAny(operation as AnyOperation);

  async function executeAny<TData>(operation: AnyOperation): Promise<FormattedExecutionResult<TData>> {
    const { document, variables, operationName, waitMs, signal, cacheControl } = operation;
    const { apiKey = typeof serverKey === 'string' ? serverKey : undefined } = operation;
    if (waitMs !== undefined && !(waitMs >= 0)) {
      throw new TypeError(`execute: waitMs: expected milliseconds from 0, got ${String(waitMs)}`);
    }
    signal?.throwIfAborted();
    const params = { query: textOf(document), variables, operationName } as GraphQLParams;
    const result = await run(params, { apiKey: givenApiKey(apiKey), waitMs, signal: () => signal, cacheControl });
    return plainResult(result) as FormattedExecutionResult<TData>;
  }

  async function run(params: GraphQLParams, terms: RequestTerms): Promise<ExecutionResult> {
    const error = paramsError(params);
    if (error) return { errors: [error] };
    const { query, variables: variableValues, operationName } = params;
    const { schema, parse, validate, contextFactory, execute } = envelop({ params, terms });
    try {
      const document: DocumentNode = parse(query);
      const errors = validate(schema, document);
      if (errors.length > 0) return { errors };
      const contextValue = await contextFactory();
      // Envelop hands the signal on to graphql-js, but has no type for it.
      const args = { schema, document, variableValues, operationName, contextValue, abortSignal: terms.signal() };
      return await execute(args);
    } catch (thrown) {
      terms.signal()?.throwIfAborted();
      return { errors: [maskError(thrown)] };
    }
  }

  /** As text, so that a document counts against the limits whoever parsed it, and its validation is remembered. */
  function textOf(document: AnyOperation['document']): string {
    if (typeof document === 'string' || isText(document)) return String(document);
    const known = texts.get(document);
    if (known !== undefined) return known;
    const text = printed(document);
    texts.set(document, text);
    return text;
  }
}

type AnyOperation = Operation<unknown, Record<string, unknown>>;

function isText(document: object): document is TypedText {
  return Object.prototype.toString.call(document) === '[object String]';
}

function printed(document: unknown): string {
  try {
    return print(document as DocumentNode);
  } catch (cause) {
    throw new TypeError('execute: document: expected GraphQL as text, or parsed to a DocumentNode', { cause });
  }
}

/** As if it had been sent: GraphQL's objects have no prototype, and React for one takes only those that have. */
function plainResult({ data, errors, extensions }: ExecutionResult): unknown {
  return JSON.parse(JSON.stringify({ errors: errors?.map(plainError), data, extensions }));
}
