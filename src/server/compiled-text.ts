import {
  GraphQLID,
  GraphQLString,
  getArgumentValues,
  getNullableType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  locatedError,
} from 'graphql';
import type {
  FieldNode,
  GraphQLError,
  GraphQLField,
  GraphQLLeafType,
  GraphQLObjectType,
  GraphQLOutputType,
  GraphQLResolveInfo,
  SelectionSetNode,
} from 'graphql';
import type { ResolverContext } from '../schema/builder.ts';
import type { SelectedFields } from './selected-fields.ts';
import type { TextMemory, Texts } from './text-memory.ts';

/** What `getVariableValues` of graphql-js gives. */
export type VariableValues = NonNullable<Parameters<typeof getArgumentValues>[2]>;

/** One run of an operation. */
export interface Run {
  readonly context: ResolverContext;
  readonly variableValues: VariableValues;
  /** Of the fields that are null because of them. */
  readonly errors: GraphQLError[];
  /** Whether something was waited for: what a call has brought may never be asked for again. */
  waited: boolean;
}

/** Where in the answer something stands, from its end. */
export interface Place {
  readonly above: Place | undefined;
  readonly key: string | number;
}

/** What of the schema an operation asks for. */
export interface Selection {
  readonly fields: SelectedFields;
  readonly memory: TextMemory;
}

/**
 * The JSON of a value: `null` for one that is none, and a promise only where a resolver gave one.
 *
 * @throws GraphQLError where a field below failed that may not be null.
 */
export type TextOf = (value: unknown, run: Run, place: Place | undefined) => Promise<string> | string;

type Field = GraphQLField<unknown, unknown>;

/**
 * The JSON of an object with the fields that are selected of it. It is written down field by field, since most of the time
 * that graphql-js takes for an answer goes into objects that are turned into JSON a moment later.
 */
export function compileText(type: GraphQLObjectType, sets: readonly SelectionSetNode[], selection: Selection): TextOf {
  const fields = [...selection.fields(sets)].map(([key, nodes], index) => ({
    prefix: `${index === 0 ? '{' : ','}${JSON.stringify(key)}:`,
    text: compileField(type, { key, nodes }, selection),
  }));
  if (fields.length === 0) return () => '{}';
  return REMEMBERED.has(type.name) ? rememberedObject(write, selection.memory.forSelection()) : write;

  function write(value: unknown, run: Run, place: Place | undefined): Promise<string> | string {
    let json = '';
    let pieces: Pieces | undefined;
    for (const { prefix, text } of fields) {
      const part = text(value, run, place);
      json += prefix;
      if (typeof part === 'string') json += part;
      else {
        pieces = withPromise(pieces, json, part);
        json = '';
      }
    }
    return pieces ? joined(pieces, `${json}}`) : `${json}}`;
  }
}

/** Animals never change, and memory answers with the same ones again and again. */
const REMEMBERED: ReadonlySet<string> = new Set(['Pet']);

function rememberedObject(write: TextOf, texts: Texts): TextOf {
  return remembered(write, texts, (_object, { waited }) => !waited);
}

/** A list that a call has brought is worth its room once it has come a second time, which it does while it does not change. */
function rememberedList(write: TextOf, texts: Texts): TextOf {
  const seen = new WeakSet();
  return remembered(write, texts, (list, { waited }) => {
    if (!waited || seen.has(list)) return true;
    seen.add(list);
    return false;
  });
}

function remembered(write: TextOf, texts: Texts, isWorthIt: (value: object, run: Run) => boolean): TextOf {
  return (value, run, place) => {
    const known = texts.find(value as object);
    if (known !== undefined) return known;
    const errorsBefore = run.errors.length;
    const text = write(value, run, place);
    if (typeof text === 'string' && run.errors.length === errorsBefore && isWorthIt(value as object, run))
      texts.keep(value as object, text, text.length);
    return text;
  };
}

function waiting(run: Run): Run {
  run.waited = true;
  return run;
}

interface Selected {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
}

function compileField(parent: GraphQLObjectType, { key, nodes }: Selected, selection: Selection): TextOf {
  const [node] = nodes as [FieldNode];
  const name = node.name.value;
  if (name === '__typename') return () => JSON.stringify(parent.name);
  const field = parent.getFields()[name] as Field;
  const resolve = field.resolve ?? ((source: unknown) => (source as Record<string, unknown>)[name]);
  const argumentsOf = compileArguments(field, node);
  const mayBeNull = !isNonNullType(field.type);
  const complete = compileValue(field.type, nodes, selection);
  const isLeaf = isLeafType(getNullableType(field.type));

  return (source, run, above) => {
    try {
      const value = resolve(source, argumentsOf(run), run.context, NO_INFO);
      const place = isLeaf ? above : { above, key };
      const text =
        value instanceof Promise
          ? value.then((come) => complete(come, waiting(run), place))
          : complete(value, run, place);
      return typeof text === 'string' ? text : text.catch((error: unknown) => failed(error, run, above));
    } catch (error) {
      return failed(error, run, above);
    }
  };

  function failed(thrown: unknown, run: Run, above: Place | undefined): string {
    const error = locatedError(thrown, nodes, pathOf({ above, key }));
    if (!mayBeNull) throw error;
    run.errors.push(error);
    return 'null';
  }
}

/** petql's resolvers look at nothing of it, and it costs more to make than they do. */
const NO_INFO = undefined as unknown as GraphQLResolveInfo;

/** Arguments are the same at each run with the same variables, and those that no variable is in at every run. */
function compileArguments(field: Field, node: FieldNode): (run: Run) => Record<string, unknown> {
  if (field.args.length === 0) return () => NO_ARGUMENTS;
  const { arguments: given = [] } = node;
  if (given.some(({ value }) => holdsVariable(value))) {
    const known = new WeakMap<VariableValues, Record<string, unknown>>();
    return ({ variableValues }) => {
      const values = known.get(variableValues) ?? getArgumentValues(field, node, variableValues);
      known.set(variableValues, values);
      return values;
    };
  }
  const values = getArgumentValues(field, node);
  return () => values;
}

const NO_ARGUMENTS = {};

function holdsVariable(node: unknown): boolean {
  return JSON.stringify(node, (key, value: unknown) => (key === 'loc' ? undefined : value)).includes(
    '"kind":"Variable"',
  );
}

function compileValue(type: GraphQLOutputType, nodes: readonly FieldNode[], selection: Selection): TextOf {
  if (isNonNullType(type)) {
    const text = compileValue(type.ofType, nodes, selection);
    return (value, run, place) => {
      const json = text(value, run, place);
      return typeof json === 'string' ? notNull(json) : json.then(notNull);
    };
  }
  const text = compileNullable(type, nodes, selection);
  return (value, run, place) => {
    if (value === null || value === undefined) return 'null';
    if (value instanceof Error) throw value;
    return text(value, run, place);
  };
}

function notNull(json: string): string {
  if (json === 'null') throw new Error('Cannot return null for a non-nullable field.');
  return json;
}

function compileNullable(type: GraphQLOutputType, nodes: readonly FieldNode[], selection: Selection): TextOf {
  if (isListType(type)) return compileList(type.ofType, nodes, selection);
  if (!isObjectType(type)) return compileLeaf(type as GraphQLLeafType);
  const sets = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  return compileText(type, sets, selection);
}

function compileList(itemType: GraphQLOutputType, nodes: readonly FieldNode[], selection: Selection): TextOf {
  const mayBeNull = !isNonNullType(itemType);
  const complete = compileValue(itemType, nodes, selection);
  // A list with gaps is put together for one request; one without comes from memory as it stands there.
  const lasts = isNonNullType(itemType) && isObjectType(itemType.ofType) && REMEMBERED.has(itemType.ofType.name);
  return lasts ? rememberedList(write, selection.memory.forSelection()) : write;

  function write(value: unknown, run: Run, above: Place | undefined): Promise<string> | string {
    let json = '[';
    let pieces: Pieces | undefined;
    let index = 0;
    for (const item of value as readonly unknown[]) {
      if (index > 0) json += ',';
      const part = itemText(item, run, { above, key: index });
      if (typeof part === 'string') json += part;
      else {
        pieces = withPromise(pieces, json, part);
        json = '';
      }
      index += 1;
    }
    return pieces ? joined(pieces, `${json}]`) : `${json}]`;
  }

  function itemText(item: unknown, run: Run, place: Place): Promise<string> | string {
    try {
      const text =
        item instanceof Promise ? item.then((come) => complete(come, waiting(run), place)) : complete(item, run, place);
      return typeof text === 'string' ? text : text.catch((error: unknown) => failed(error, run, place));
    } catch (error) {
      return failed(error, run, place);
    }
  }

  function failed(thrown: unknown, run: Run, place: Place): string {
    const error = locatedError(thrown, nodes, pathOf(place));
    if (!mayBeNull) throw error;
    run.errors.push(error);
    return 'null';
  }
}

function compileLeaf(type: GraphQLLeafType): TextOf {
  const coerce = (value: unknown) => {
    const coerced = type.coerceOutputValue(value);
    if (coerced === null || coerced === undefined) throw new Error(`Expected a value of ${type.name}, got none.`);
    return JSON.stringify(coerced);
  };
  if (isEnumType(type)) {
    const names = new Map(type.getValues().map(({ name, value }) => [value as unknown, JSON.stringify(name)]));
    return (value) => names.get(value) ?? coerce(value);
  }
  if (type !== GraphQLID && type !== GraphQLString) return coerce;
  return (value) => (typeof value === 'string' ? JSON.stringify(value) : coerce(value));
}

/** What is there already, and in turn what is still to come. */
interface Pieces {
  readonly texts: string[];
  readonly promises: Promise<string>[];
}

function withPromise(pieces: Pieces | undefined, before: string, promise: Promise<string>): Pieces {
  const all = pieces ?? { texts: [], promises: [] };
  // Where a sibling throws meanwhile, nobody waits for this one any more.
  promise.catch(() => undefined);
  all.texts.push(before);
  all.promises.push(promise);
  return all;
}

async function joined({ texts, promises }: Pieces, end: string): Promise<string> {
  const come = await Promise.all(promises);
  return texts.map((text, index) => text + come[index]).join('') + end;
}

function pathOf(place: Place | undefined): (string | number)[] {
  return place ? [...pathOf(place.above), place.key] : [];
}
