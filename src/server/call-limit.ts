import { Kind, getOperationAST } from 'graphql';
import type {
  ConstValueNode,
  DocumentNode,
  ExecutionArgs,
  ExecutionResult,
  FieldNode,
  OperationDefinitionNode,
  ValueNode,
} from 'graphql';
import { LISTINGS } from '../caller/call.ts';
import type { PetqlError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { MOST_IDS } from '../schema/query.ts';
import { graphqlError } from './error-answers.ts';
import { createFieldsAt } from './fields-at.ts';
import type { CollectFields } from './fields-at.ts';
import { fragmentsOf } from './fragments.ts';
import { limitExceeded } from './limit-exceeded.ts';
import type { RequestContext } from './request-context.ts';
import { findWanted } from './wanted.ts';
import type { Wanted } from './wanted.ts';

/** Keeps operations out that can cost too many calls, or that ask for too many animals by their ids. */
export interface CallLimit {
  /** Whether an operation of this document may be one of them, whatever its variables are. Few documents are. */
  concerns(document: DocumentNode): boolean;
  /** Finds out what an operation wants, and whether it may run with what is known now. */
  admit(args: ExecutionArgs, context: RequestContext): Promise<Admission>;
}

export type Admission =
  /** LIMIT_EXCEEDED, or what is wrong with its variables. */
  | { readonly refused: ExecutionResult }
  | {
      readonly wanted: Wanted;
      /** With the errors of fields that would fail at once; its data mean nothing. */
      readonly result: ExecutionResult;
      /** What it can cost at worst. */
      readonly upstreamCalls: number;
    };

/**
 * In all lists of an operation, equal ones among them: each place in a list fails on its own, and a document of a few
 * kilobytes could have twenty thousand of them.
 */
const MOST_IDS_IN_ALL = 1_000;

/** The listings that stand in for reads of single animals, once the service has none. */
const FEWEST_CALLS = LISTINGS.length;

export function createCallLimit({ maxUpstreamCalls }: Pick<Limits, 'maxUpstreamCalls'>): CallLimit {
  const concerned = new WeakMap<DocumentNode, boolean>();
  return {
    concerns(document) {
      const known = concerned.get(document) ?? mostCalls(document) > Math.min(maxUpstreamCalls, MOST_IDS_IN_ALL);
      concerned.set(document, known);
      return known;
    },
    async admit(args, context) {
      // First: to find out what so many are costs too much.
      const tooManyIds = idsError(args);
      if (tooManyIds) return refused(tooManyIds);
      const { wanted, result } = await findWanted(args);
      if (!('data' in result)) return { refused: result };
      const upstreamCalls = context.worstCase(wanted);
      if (upstreamCalls <= maxUpstreamCalls) return { wanted, result, upstreamCalls };
      return refused(limitExceeded('upstreamCalls', maxUpstreamCalls, upstreamCalls));
    },
  };
}

function refused(error: PetqlError): Admission {
  return { refused: { errors: [graphqlError(error)] } };
}

function idsError({ document, operationName, variableValues }: ExecutionArgs): PetqlError | undefined {
  const operation = getOperationAST(document, operationName);
  if (!operation) return undefined;
  const { selectionSet, variableDefinitions = [] } = operation;
  const given = new Map<string, number>();
  for (const { variable, defaultValue } of variableDefinitions) {
    const { value: name } = variable.name;
    // As graphql-js looks for it: every object has a `toString`.
    const value = variableValues && Object.hasOwn(variableValues, name) ? variableValues[name] : undefined;
    given.set(name, value === undefined ? lengthOf(defaultValue) : Array.isArray(value) ? value.length : 1);
  }
  // Fields that come twice under one name are one field.
  const fieldsAt = createFieldsAt(fragmentsOf(document));
  let all = 0;
  for (const fields of fieldsAt([selectionSet]).values()) {
    const field = fields.findLast(({ name }) => name.value === 'petsById');
    if (field) all += mostIds(field, (variable) => given.get(variable) ?? 0);
  }
  return all > MOST_IDS_IN_ALL ? limitExceeded('ids', MOST_IDS_IN_ALL, all) : undefined;
}

/** A bound that costs nothing to find: of any operation of the document, whatever its variables are and what is known. */
function mostCalls(document: DocumentNode): number {
  const fieldsAt = createFieldsAt(fragmentsOf(document));
  let most = FEWEST_CALLS;
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) most = Math.max(most, mostCallsOf(definition, fieldsAt));
  }
  return most;
}

/** A call for each listing that there is and for each animal, and a listing that tries to save them. */
function mostCallsOf({ selectionSet }: OperationDefinitionNode, fieldsAt: CollectFields): number {
  let animals = 0;
  let listings = 0;
  for (const field of fieldsAt([selectionSet]).values().toArray().flat()) {
    const name = field.name.value;
    if (name === 'pets') listings += 1;
    else if (name === 'petsById') animals += mostIds(field, () => MOST_IDS);
    else animals += 1;
  }
  // Where reads of single animals come back in its midst, animals may have been looked for in all listings before.
  return Math.max(animals + Math.min(listings, LISTINGS.length) + 1, animals === 0 ? 0 : animals + LISTINGS.length);
}

/** How many ids a `petsById` asks for; more than it may is an error at once. */
function mostIds({ arguments: [ids] = [] }: FieldNode, lengthOfVariable: (name: string) => number): number {
  const value = ids?.value;
  return Math.min(value?.kind === Kind.VARIABLE ? lengthOfVariable(value.name.value) : lengthOf(value), MOST_IDS);
}

/** Of a list in a document; a value that is none stands for a list of it. */
function lengthOf(value: ConstValueNode | ValueNode | undefined): number {
  if (!value) return 0;
  return value.kind === Kind.LIST ? value.values.length : 1;
}
