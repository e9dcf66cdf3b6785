import { Kind, getVariableValues, visit } from 'graphql';
import type { DocumentNode, GraphQLError, GraphQLObjectType, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import type { ResolverContext } from '../schema/builder.ts';
import { createSelectedFields } from './selected-fields.ts';
import type { SelectedFields } from './selected-fields.ts';
import { compileText } from './compiled-text.ts';
import type { TextOf, VariableValues } from './compiled-text.ts';
import type { CompiledTexts } from './compiled-texts.ts';
import type { TextMemory } from './text-memory.ts';

/** A query that is ready to be run again and again, with graphql-js's own result as JSON. */
export interface CompiledOperation {
  readonly definition: OperationDefinitionNode;
  /** @returns undefined where the variables are not as the operation declares them. */
  withVariables(variables: Readonly<Record<string, unknown>>): OperationRun | undefined;
}

/** Runs an operation with its variables, as often as it is asked to. */
export type OperationRun = (context: ResolverContext) => CompiledResult | Promise<CompiledResult>;

export interface CompiledResult {
  /** The value of `data`, as JSON. */
  readonly data: string;
  /** Located, and not yet masked. */
  readonly errors: readonly GraphQLError[];
}

/** An operation is compiled anew for each outcome of its `@skip`s and `@include`s: at most two to the power of this. */
const MOST_CONDITIONS = 4;

/** Compiles the operations of a validated document whose fields are all of the schema's own types. */
export function createOperationCompiler(
  options: CompilerOptions,
): (operation: OperationDefinitionNode) => CompiledOperation | undefined {
  // Once for all operations: there may be a thousand.
  const names = conditionVariables(options.document);
  if (!names || names.length > MOST_CONDITIONS) return () => undefined;
  return (operation) => compileOperation(operation, { ...options, names });
}

export interface CompilerOptions {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  /** What is written of animals and lists of them. */
  readonly memory: TextMemory;
  readonly compiledTexts: CompiledTexts;
}

interface Surroundings extends CompilerOptions {
  /** The variables that selections depend on. */
  readonly names: readonly string[];
}

/** @returns undefined for what the reference implementation is to run: mutations, introspection, other directives. */
function compileOperation(
  operation: OperationDefinitionNode,
  { schema, document, memory, compiledTexts, names }: Surroundings,
): CompiledOperation | undefined {
  const type = schema.getRootType(operation.operation);
  if (operation.operation !== 'query' || !type) return undefined;
  const { selectionSet, variableDefinitions = [] } = operation;
  const texts = compiledTexts.forOperation();

  return {
    definition: operation,
    withVariables(given) {
      const { variableValues } =
        variableDefinitions.length === 0
          ? NO_VARIABLES
          : // One is enough: what is wrong with them, the server says.
            getVariableValues(schema, variableDefinitions, given, { maxErrors: 1 });
      if (!variableValues || !names.every((name) => typeof variableValues.coerced[name] === 'boolean'))
        return undefined;
      return (context) => {
        const errors: GraphQLError[] = [];
        const text = textFor(type, variableValues);
        const data = text(undefined, { context, variableValues, errors, waited: false }, undefined);
        return typeof data === 'string' ? { data, errors } : data.then((json) => ({ data: json, errors }));
      };
    },
  };

  function textFor(root: GraphQLObjectType, { coerced }: VariableValues): TextOf {
    const outcome = names.map((name) => (coerced[name] ? '1' : '0')).join('');
    const known = texts.get(outcome);
    if (known) return known;
    let count = 0;
    const selected = createSelectedFields(document, (name) => coerced[name] === true);
    const fields: SelectedFields = (sets) => {
      const found = selected(sets);
      count += found.size;
      return found;
    };
    const text = compileText(root, [selectionSet], { fields, memory });
    texts.set(outcome, text, count);
    return text;
  }
}

const NO_VARIABLES: { readonly variableValues: VariableValues } = { variableValues: { sources: {}, coerced: {} } };

/** The variables that selections depend on; undefined where the document holds what is not compiled. */
function conditionVariables(document: DocumentNode): readonly string[] | undefined {
  const names = new Set<string>();
  let foreign = false;
  visit(document, {
    Directive({ name, arguments: [argument] = [] }) {
      if (name.value !== 'skip' && name.value !== 'include') foreign = true;
      else if (argument?.value.kind === Kind.VARIABLE) names.add(argument.value.name.value);
    },
    Field({ name }) {
      if (name.value.startsWith('__') && name.value !== '__typename') foreign = true;
    },
  });
  return foreign ? undefined : [...names];
}
