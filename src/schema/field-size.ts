import type { GraphQLField, GraphQLSchema, ValueNode } from 'graphql';
import type { Read } from '../pets/read-key.ts';

/** What a field does with pets: each kind of reads has a cost and its calls (document-measure.ts). */
export type FieldUse = Read['kind'] | 'none' | 'write';

/** How many items the result of a field can have, and how many reads or writes it makes. */
export interface FieldSize {
  readonly use: FieldUse;
  readonly items: number;
  readonly count: number;
}

/** @param argument returns the value of an argument in the document; undefined where it has none. */
type SizeOf = (argument: (name: string) => ValueNode | undefined) => FieldSize;

/** Declares beside a field of any type what it reads, and how large its result can be with any variables. */
export function sized(sizeOf: SizeOf): { readonly sizeOf: SizeOf } {
  return { sizeOf };
}

/** Returns what `sized` declares beside a field. */
export function sizeBeside({ extensions }: GraphQLField<unknown, unknown>): SizeOf | undefined {
  return extensions['sizeOf'] as SizeOf | undefined;
}

/** @throws Error for a query that does not say what it reads. */
export function checkSizes(schema: GraphQLSchema): void {
  const queries = Object.values(schema.getQueryType()?.getFields() ?? {});
  const undeclared = queries.find((field) => !sizeBeside(field));
  if (undeclared) throw new Error(`the query ${undeclared.name} does not say what it reads: give it sized(…)`);
}
