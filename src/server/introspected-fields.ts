import { Kind, __Schema, __Type, getNamedType, isObjectType } from 'graphql';
import type { FieldNode, GraphQLField, GraphQLObjectType, GraphQLResolveInfo, SelectionSetNode } from 'graphql';
import { schema } from '../schema/schema.ts';
import { setsBelow } from './fields-at.ts';
import type { CollectFields, FieldsAt } from './fields-at.ts';

/** What of the schema stands at one place of the answer, in all lists around it, and what is selected of each. */
interface Shown {
  readonly type: GraphQLObjectType;
  readonly values: readonly unknown[];
  readonly sets: readonly SelectionSetNode[];
}

/**
 * How many fields of an operation's answer tell of the schema. Its lists make many of few, so that it is gone through as
 * the operation would, deprecated things among the others.
 *
 * @param root the operation's own fields.
 * @param most once there are more, the rest is not looked at.
 */
export function introspectedFields(root: FieldsAt, fieldsAt: CollectFields, most: number): number {
  let count = 0;
  const open = shownAt(root);
  for (let shown = open.pop(); shown && count <= most; shown = open.pop()) {
    const { type, values, sets } = shown;
    for (const fields of fieldsAt(sets).values()) {
      count += values.length;
      if (count > most) break;
      const field = type.getFields()[fields[0]?.name.value ?? ''];
      const lower = setsBelow(fields);
      // Of what is no object, or not there, validation refuses what is selected.
      if (!field || lower.length === 0) continue;
      const below = getNamedType(field.type);
      if (!isObjectType(below)) continue;
      const found = values.flatMap((value) => valuesOf(field, value));
      if (found.length > 0) open.push({ type: below, values: found, sets: lower });
    }
  }
  return count;
}

function shownAt(root: FieldsAt): Shown[] {
  const shown: Shown[] = [];
  for (const fields of root.values()) {
    const [first] = fields;
    const sets = setsBelow(fields);
    if (first?.name.value === '__schema') shown.push({ type: __Schema, values: [schema], sets });
    if (first?.name.value === '__type') shown.push({ type: __Type, values: typesOf(first), sets });
  }
  return shown.filter(({ values }) => values.length > 0);
}

/** The type that is asked for; it may be any where a variable names it. */
function typesOf({ arguments: [name] = [] }: FieldNode): readonly unknown[] {
  if (name?.value.kind === Kind.VARIABLE) return Object.values(schema.getTypeMap());
  return name?.value.kind === Kind.STRING ? present(schema.getType(name.value.value)) : [];
}

/** What graphql-js shows in a field, which needs no more than this for it. */
function valuesOf(field: GraphQLField<unknown, unknown>, value: unknown): readonly unknown[] {
  return present(field.resolve?.(value, { includeDeprecated: true }, undefined, { schema } as GraphQLResolveInfo));
}

function present(value: unknown): readonly unknown[] {
  return [value].flat().filter((one) => one !== undefined && one !== null);
}
