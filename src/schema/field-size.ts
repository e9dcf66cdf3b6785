import type { GraphQLField, GraphQLSchema, ValueNode } from 'graphql';
import type { Read } from '../pets/read-key.ts';

/** What a root field does with pets: each kind of reads has a cost (query-limits.ts). */
export type FieldUse = Read['kind'] | 'none' | 'write';

/** How many items the result of a field can have, and how many reads or writes it makes. */
interface Size {
  readonly items: number;
  readonly count: number;
}

export interface FieldSize extends Size {
  readonly use: FieldUse;
}

/** @param argument returns the value of an argument in the document; undefined where it has none. */
type SizeOf<Of = FieldSize> = (argument: (name: string) => ValueNode | undefined) => Of;

/** Declares beside a root field what it reads, and how large its result can be with any variables. */
export function sized(use: FieldUse, sizeOf: SizeOf<Size>): { readonly sizeOf: SizeOf } {
  return { sizeOf: (argument) => ({ use, ...sizeOf(argument) }) };
}

const WRITE: SizeOf = () => ({ use: 'write', items: 1, count: 1 });

/** Returns the sizes of the root fields by their names. @throws Error for a query without a declared size; a mutation is one write. */
export function rootFieldSizes(schema: GraphQLSchema): ReadonlyMap<string, SizeOf> {
  const queries = Object.values(schema.getQueryType()?.getFields() ?? {});
  const mutations = Object.values(schema.getMutationType()?.getFields() ?? {});
  return new Map([
    ...queries.map((field) => [field.name, declaredSize(field) ?? undeclared(field)] as const),
    ...mutations.map((field) => [field.name, declaredSize(field) ?? WRITE] as const),
  ]);
}

function declaredSize({ extensions }: GraphQLField<unknown, unknown>): SizeOf | undefined {
  return extensions['sizeOf'] as SizeOf | undefined;
}

function undeclared({ name }: GraphQLField<unknown, unknown>): never {
  throw new Error(`the query ${name} does not say what it reads: give it extensions: sized(…)`);
}
