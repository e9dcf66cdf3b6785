import { Kind, SchemaMetaFieldDef, TypeMetaFieldDef, getNamedType, isInterfaceType, isObjectType } from 'graphql';
import type {
  DocumentNode,
  FieldNode,
  GraphQLField,
  GraphQLNamedType,
  GraphQLSchema,
  SelectionNode,
  SelectionSetNode,
} from 'graphql';
import { LISTS, WIDE_LISTS } from '../../pets/read-key.ts';
import { sizeBeside } from '../../schema/field-size.ts';
import type { FieldSize, FieldUse } from '../../schema/field-size.ts';

/** How often an operation has each use of the pet API. */
export type Uses = { readonly [Use in FieldUse]: number };

/** What an operation can be, with any variables. */
export interface Measure {
  readonly depth: number;
  readonly aliases: number;
  /** Fields that the result can have: each counts once for every item of the lists around it. */
  readonly cost: number;
  /** All uses, each as often as there can be items around it. */
  readonly uses: Uses;
  /** Those of them that depend on the result of another field: a dry run does not come so far. */
  readonly nested: Uses;
}

/** What a use costs: an id or a write can cost a call, or an error. There are few lists, however often a document has them. */
const COST_OF: Uses = { none: 0, list: 0, pet: 20, write: 20 };

/** The calls that a use can need, beside the other ones of the operation. A use that is missing here does not compile. */
const CALLS_OF: { readonly [Use in FieldUse]: (uses: Uses) => number } = {
  none: () => 0,
  /** A wide list may be tried for other lists, and any list for pets. */
  list({ list, pet }) {
    if (pet > 0) return LISTS.length;
    return list > 0 ? Math.min(list + WIDE_LISTS.length, LISTS.length) : 0;
  },
  pet: ({ pet }) => pet,
  write: ({ write }) => write,
};

const USES = Object.keys(CALLS_OF) as readonly FieldUse[];
const NO_USES: Uses = { none: 0, list: 0, pet: 0, write: 0 };
const NO_MEASURE: Measure = { depth: 0, aliases: 0, cost: 0, uses: NO_USES, nested: NO_USES };
const WRITE: FieldSize = { use: 'write', items: 1, count: 1 };

/** Tools ask for introspection, which no type has as a field. */
const INTROSPECTION: ReadonlyMap<string, GraphQLField<unknown, unknown>> = new Map([
  ['__schema', SchemaMetaFieldDef],
  ['__type', TypeMetaFieldDef],
]);
/** Lists of the schema that introspection shows, by type and field, at their mean length. */
const INTROSPECTION_SIZES = new Map([
  ['__Schema.types', 30],
  ['__Schema.directives', 5],
  ['__Type.fields', 3],
  ['__Type.enumValues', 2],
]);

/** Returns the maximum of upstream calls that so many uses can need. */
export function maxCalls(uses: Uses): number {
  return USES.reduce((sum, use) => sum + CALLS_OF[use](uses), 0);
}

/** Returns the maximum of each measure over the operations of a parsed document, which need not be valid. */
export function measureDocument({ definitions }: DocumentNode, schema: GraphQLSchema): Measure {
  /** Each fragment is measured once, so that fragments that multiply cost no more than they are long. */
  const measured = new Map<string, Measure>();
  const operations = definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  return operations
    .map(({ operation, selectionSet }) => measure(selectionSet, schema.getRootType(operation) ?? undefined))
    .reduce((one, other) => combined(one, other, Math.max), NO_MEASURE);

  function measure({ selections }: SelectionSetNode, parent: GraphQLNamedType | undefined): Measure {
    const parts = selections.map((selection) => measureSelection(selection, parent));
    const sums = parts.reduce((one, other) => combined(one, other, add), NO_MEASURE);
    return { ...sums, depth: Math.max(0, ...parts.map(({ depth }) => depth)) };
  }

  function measureSelection(selection: SelectionNode, parent: GraphQLNamedType | undefined): Measure {
    switch (selection.kind) {
      case Kind.FRAGMENT_SPREAD:
        return measureFragment(selection.name.value);
      case Kind.INLINE_FRAGMENT: {
        const { typeCondition, selectionSet } = selection;
        return measure(selectionSet, typeCondition ? schema.getType(typeCondition.name.value) : parent);
      }
      case Kind.FIELD:
        return measureField(selection, parent);
    }
  }

  function measureField(node: FieldNode, parent: GraphQLNamedType | undefined): Measure {
    const field = fieldOf(node.name.value, parent);
    const { count, items, use } = sizeOf(node, field, parent);
    const below = node.selectionSet ? measure(node.selectionSet, field && getNamedType(field.type)) : NO_MEASURE;
    const nested = mapUses((each) => items * below.uses[each]);
    return {
      // graphql-js bounds introspection (MaxIntrospectionDepthRule), and tools ask for more levels than data has.
      depth: INTROSPECTION.has(node.name.value) ? 1 : below.depth + 1,
      aliases: below.aliases + (node.alias ? 1 : 0),
      cost: 1 + COST_OF[use] * count + items * below.cost,
      uses: { ...nested, [use]: nested[use] + count },
      nested,
    };
  }

  function measureFragment(name: string): Measure {
    const known = measured.get(name);
    if (known) return known;
    // Ends a cycle, which validation rejects.
    measured.set(name, NO_MEASURE);
    const fragment = definitions.find(
      (definition) => definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === name,
    );
    if (fragment?.kind !== Kind.FRAGMENT_DEFINITION) return NO_MEASURE;
    const result = measure(fragment.selectionSet, schema.getType(fragment.typeCondition.name.value));
    measured.set(name, result);
    return result;
  }

  /** Returns the size that is declared beside a field; else that of a write, of a list of introspection, or of one item. */
  function sizeOf(
    { name, arguments: given = [] }: FieldNode,
    field: GraphQLField<unknown, unknown> | undefined,
    parent: GraphQLNamedType | undefined,
  ): FieldSize {
    const argument = (wanted: string) => given.find((one) => one.name.value === wanted)?.value;
    const declared = field && sizeBeside(field)?.(argument);
    if (declared) return declared;
    if (field && parent === schema.getMutationType()) return WRITE;
    return { use: 'none', items: INTROSPECTION_SIZES.get(`${parent?.name}.${name.value}`) ?? 1, count: 0 };
  }
}

function fieldOf(name: string, parent: GraphQLNamedType | undefined): GraphQLField<unknown, unknown> | undefined {
  const introspection = INTROSPECTION.get(name);
  if (introspection) return introspection;
  return isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name] : undefined;
}

type Combine = (one: number, other: number) => number;

const add: Combine = (one, other) => one + other;

/** Combines each of the numbers. */
function combined(one: Measure, other: Measure, combine: Combine): Measure {
  return {
    depth: combine(one.depth, other.depth),
    aliases: combine(one.aliases, other.aliases),
    cost: combine(one.cost, other.cost),
    uses: mapUses((use) => combine(one.uses[use], other.uses[use])),
    nested: mapUses((use) => combine(one.nested[use], other.nested[use])),
  };
}

function mapUses(map: (use: FieldUse) => number): Uses {
  const uses = { ...NO_USES } as Record<FieldUse, number>;
  for (const use of USES) uses[use] = map(use);
  return uses;
}
