import { Kind, getOperationAST } from 'graphql';
import type { DocumentNode, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import type { Limits } from '../limits.ts';
import type { CallLimit } from './call-limit.ts';
import { createOperationCompiler } from './compiled-operation.ts';
import type { CompiledOperation, OperationRun } from './compiled-operation.ts';
import { createCompiledTexts } from './compiled-texts.ts';
import { createDocumentCache } from './document-cache.ts';
import { inexactVariableError } from './exact-variables.ts';
import type { OperationAnswers, RememberedAnswers } from './remembered-answers.ts';
import type { TextMemory } from './text-memory.ts';
import { variableLimitError } from './variable-limits.ts';

/** What a request's body asks for, ready to be run. */
export interface Prepared {
  readonly definition: OperationDefinitionNode;
  readonly run: OperationRun;
  /** What it was answered before. */
  readonly answers: OperationAnswers;
}

export interface PreparationOptions {
  readonly schema: GraphQLSchema;
  readonly limits: Pick<Limits, 'maxTokens'>;
  /** A document that was checked and is valid. @throws whatever is wrong with it. */
  checkedDocument(params: FastParams): DocumentNode;
  readonly callLimit: CallLimit;
  readonly rememberedAnswers: RememberedAnswers;
  /** What is written of animals and lists of them. */
  readonly memory: TextMemory;
}

/** A request's body. */
export interface FastParams {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>>;
}

interface CompiledDocument {
  /** By operation name; under '' the only one of its document. */
  readonly operations: ReadonlyMap<string, CompiledOperation>;
  /** Of the document that they hold. */
  readonly tokens: number;
}

/** It holds its document, even once the compiler has forgotten that. */
type PreparedDocument = Prepared & Pick<CompiledDocument, 'tokens'>;

/** Longer bodies are read anew each time. */
const LONGEST_REMEMBERED = 16_384;
/** No document of the default size needs as much. What is longer is for the server, and is not parsed here before. */
const LONGEST_READ = 65_536;

/** Made once for each body: most requests are the same to the byte as an earlier one, but for whose they are. */
export function createPreparation(options: PreparationOptions): (body: Buffer) => Prepared | undefined {
  const { rememberedAnswers, limits } = options;
  const compiled = createCompiler(options);
  const known = createDocumentCache<PreparedDocument>(({ tokens }) => tokens);
  return (body) => {
    if (body.length > LONGEST_READ) return undefined;
    if (body.length > LONGEST_REMEMBERED) return prepare(body);
    // A character a byte: no two bodies have the same text.
    const text = body.toString('latin1');
    const remembered = known.get(text);
    if (remembered) return remembered;
    const prepared = prepare(body);
    if (prepared) known.set(text, prepared);
    return prepared;
  };

  function prepare(body: Buffer): PreparedDocument | undefined {
    const params = readParams(body);
    if (!params || variableLimitError(params.variables, limits) || inexactVariableError(params.variables))
      return undefined;
    const { operations, tokens } = compiled(params);
    const operation = operations.get(params.operationName ?? '');
    const run = operation?.withVariables(params.variables);
    return (
      operation && run && { definition: operation.definition, run, answers: rememberedAnswers.forOperation(), tokens }
    );
  }
}

/** Made once for each document; one that is not for here has no operations in it. */
function createCompiler({
  checkedDocument,
  callLimit,
  schema,
  memory,
}: PreparationOptions): (params: FastParams) => CompiledDocument {
  const compiledTexts = createCompiledTexts();
  const documents = createDocumentCache<CompiledDocument>(({ tokens }) => tokens);
  return (params) => {
    const known = documents.get(params.query);
    if (known) return known;
    const operations = new Map<string, CompiledOperation>();
    let tokens = 0;
    try {
      const document = checkedDocument(params);
      const only = getOperationAST(document);
      // What an operation of a costly document can cost depends on its variables, and is looked at before each run.
      const compile = callLimit.concerns(document)
        ? () => undefined
        : createOperationCompiler({ schema, document, memory, compiledTexts });
      for (const definition of document.definitions) {
        if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
        const operation = compile(definition);
        if (!operation) continue;
        tokens = document.tokenCount ?? 0;
        if (definition.name) operations.set(definition.name.value, operation);
        if (definition === only) operations.set('', operation);
      }
    } catch {
      // The server says what is wrong with it.
    }
    const made = { operations, tokens };
    documents.set(params.query, made);
    return made;
  };
}

function readParams(body: Buffer): FastParams | undefined {
  let params: unknown;
  try {
    params = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
  if (!isObject(params)) return undefined;
  for (const name of Object.keys(params)) if (!KNOWN_PARAMS.has(name)) return undefined;
  const { query, operationName, variables, extensions } = params;
  const isPlain =
    typeof query === 'string' &&
    (isAbsent(operationName) || (typeof operationName === 'string' && operationName !== '')) &&
    (isAbsent(variables) || isObject(variables)) &&
    (isAbsent(extensions) || saysNothing(extensions));
  if (!isPlain) return undefined;
  return { query, operationName: operationName ?? undefined, variables: variables ?? NO_VARIABLES };
}

const KNOWN_PARAMS: ReadonlySet<string> = new Set(['query', 'operationName', 'variables', 'extensions']);
const NO_VARIABLES = {};

/** Whether it holds at most what Apollo Client says of itself. */
function saysNothing(extensions: unknown): boolean {
  return isObject(extensions) && Object.keys(extensions).every((key) => key === 'clientLibrary');
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
