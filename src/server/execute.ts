import { getOperationAST, print } from 'graphql';
import type {
  DocumentNode,
  ExecutionResult,
  FormattedExecutionResult,
  GraphQLError,
  OperationDefinitionNode,
} from 'graphql';
import type { GraphQLParams, YogaServer } from 'graphql-yoga';
import type { ServerKey } from '../gateway-options.ts';
import type { Limits } from '../limits.ts';
import { readTraceContext } from '../trace-context.ts';
import { givenApiKey } from './api-key.ts';
import { graphqlError, plainError } from './error-answers.ts';
import type { Execute, Operation, TypedText } from './operation.ts';
import { checkArguments } from './operation-arguments.ts';
import type { OperationReports } from './operation-reports.ts';
import { paramsError } from './params-error.ts';
import type { RequestTerms } from './request-terms.ts';
import { variableLimitError } from './variable-limits.ts';

export interface ExecuteOptions {
  /** The steps of an operation, with all that petql adds to each of them. */
  envelop(context: {
    terms: RequestTerms;
    params: GraphQLParams;
  }): ReturnType<YogaServer<object, object>['getEnveloped']>;
  maskError(error: unknown): GraphQLError;
  readonly reports: OperationReports;
  readonly serverKey: ServerKey | undefined;
  readonly limits: Pick<Limits, 'maxTokens'>;
}

export function createExecute({ envelop, maskError, reports, serverKey, limits }: ExecuteOptions): Execute {
  const texts = new WeakMap<object, string>();
  return (operation) => executeAny(operation as AnyOperation);

  async function executeAny<TData>(operation: AnyOperation): Promise<FormattedExecutionResult<TData>> {
    checkArguments(operation);
    const { document, variables, operationName, waitMs, signal, cacheControl, dryRun, traceparent } = operation;
    const { apiKey = typeof serverKey === 'string' ? serverKey : undefined } = operation;
    signal?.throwIfAborted();
    const params = { query: textOf(document), variables, operationName } as GraphQLParams;
    const running = reports.begin(readTraceContext(traceparent, undefined));
    const answered = run(params, {
      apiKey: givenApiKey(apiKey),
      waitMs: waitMs ?? undefined,
      signal: () => signal ?? undefined,
      cacheControl: cacheControl ?? undefined,
      dryRun: dryRun ?? false,
      trace: () => running.span.trace,
    });
    const { result, node } = await answered.catch((gone: unknown) => {
      reports.givenUp(running);
      throw gone;
    });
    reports.end(running, node, result);
    return plainResult(result) as FormattedExecutionResult<TData>;
  }

  async function run(params: GraphQLParams, terms: RequestTerms): Promise<Answered> {
    const error = paramsError(params);
    if (error) return { result: { errors: [error] } };
    const { query, variables: variableValues, operationName } = params;
    const tooMany = variableLimitError(variableValues, limits);
    if (tooMany) return { result: { errors: [graphqlError(tooMany)] } };
    const { schema, parse, validate, contextFactory, execute } = envelop({ params, terms });
    let node: Answered['node'];
    try {
      const document: DocumentNode = parse(query);
      node = getOperationAST(document, operationName) ?? undefined;
      const errors = validate(schema, document);
      if (errors.length > 0) return { node, result: { errors } };
      const contextValue = await contextFactory();
      // Envelop hands the signal on to graphql-js, but has no type for it.
      const args = { schema, document, variableValues, operationName, contextValue, abortSignal: terms.signal() };
      return { node, result: await execute(args) };
    } catch (thrown) {
      terms.signal()?.throwIfAborted();
      return { node, result: { errors: [maskError(thrown)] } };
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

interface Answered {
  readonly result: ExecutionResult;
  /** Which operation it answers, where that is known. */
  readonly node?: OperationDefinitionNode | undefined;
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
