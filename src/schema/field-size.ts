import type { GraphQLField, GraphQLSchema, ValueNode } from 'graphql';

/** How many items the result of a field can have, and how many calls for single pets it can cost. */
export interface FieldSize {
  readonly items: number;
  readonly calls: number;
}

/** @param argument returns the value of an argument in the document; undefined where it has none. */
type SizeOf = (argument: (name: string) => ValueNode | undefined) => FieldSize;

/** Declares beside a root field how large its result can be, with any variables. */
export function sized(sizeOf: SizeOf): { readonly sizeOf: SizeOf } {
  return { sizeOf };
}

/** Returns the sizes of the root fields by their names. A mutation without a declared size costs a call. */
export function rootFieldSizes(schema: GraphQLSchema): ReadonlyMap<string, SizeOf> {
  const queries = Object.values(schema.getQueryType()?.getFields() ?? {});
  const mutations = Object.values(schema.getMutationType()?.getFields() ?? {});
  return new Map([
    ...queries.map((field) => [field.name, declaredSize(field) ?? (() => ({ items: 1, calls: 0 }))] as const),
    ...mutations.map((field) => [field.name, declaredSize(field) ?? (() => ({ items: 1, calls: 1 }))] as const),
  ]);
}

function declaredSize({ extensions }: GraphQLField<unknown, unknown>): SizeOf | undefined {
  return extensions['sizeOf'] as SizeOf | undefined;
}
