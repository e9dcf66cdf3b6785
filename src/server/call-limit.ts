import { visit } from 'graphql';
import type { DocumentNode, ExecutionArgs } from 'graphql';
import type { PetqlError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { MOST_IDS } from '../schema/query.ts';
import { rootFieldsOf } from './document-limits.ts';
import { limitExceeded } from './limit-exceeded.ts';
import type { RequestContext } from './request-context.ts';
import { findWanted } from './wanted.ts';
import type { Wanted } from './wanted.ts';

/** Keeps operations out that can cost too many calls. */
export interface CallLimit {
  /** Whether an operation of this document may be one of them, whatever its variables are. Few documents are. */
  concerns(document: DocumentNode): boolean;
  /** The LIMIT_EXCEEDED error of an operation that can cost more than it may with what is known now, or undefined. */
  error(args: ExecutionArgs, context: RequestContext): Promise<PetqlError | undefined>;
  /** The same where it is known what the operation wants. */
  errorOf(wanted: Wanted, context: RequestContext): PetqlError | undefined;
}

/** The listings that stand in for reads of single animals, once the service has none. */
const FEWEST_CALLS = 4;

export function createCallLimit({ maxUpstreamCalls }: Pick<Limits, 'maxUpstreamCalls'>): CallLimit {
  const concerned = new WeakMap<DocumentNode, boolean>();
  const errorOf = (wanted: Wanted, { worstCase }: RequestContext) => {
    const calls = worstCase(wanted);
    return calls > maxUpstreamCalls ? limitExceeded('upstreamCalls', maxUpstreamCalls, calls) : undefined;
  };
  return {
    concerns(document) {
      const known = concerned.get(document) ?? mostCalls(document) > maxUpstreamCalls;
      concerned.set(document, known);
      return known;
    },
    async error(args, context) {
      const { wanted } = await findWanted(args);
      return errorOf(wanted, context);
    },
    errorOf,
  };
}

/** A bound that costs nothing to find: a call for each field, a hundred where ids can be asked for together, and a listing. */
function mostCalls(document: DocumentNode): number {
  let perField = 1;
  visit(document, {
    Field({ name }) {
      if (name.value === 'petsById') perField = MOST_IDS;
    },
  });
  return Math.max(FEWEST_CALLS, rootFieldsOf(document) * perField + 1);
}
