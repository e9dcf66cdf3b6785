import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import {
  buildSchema,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isObjectType,
  isRequiredInputField,
} from 'graphql';
import type { GraphQLField, GraphQLInputType, GraphQLObjectType } from 'graphql';
import { COSTLY_DOCUMENTS } from '../costly-documents.ts';

const schema = buildSchema(readFileSync(new URL('../../../schema/schema.graphql', import.meta.url), 'utf8'));

/** Texts that readers of text stumble over, and names that every JavaScript object has. */
export const nasty = fc.oneof(
  fc.constantFrom('\u0000', '\ufeff', '\ud800', '\udfff', '\u202e', '\u2028', '\u{1f600}', 'e\u0301', '\u0085', '\r\n'),
  fc.constantFrom('"', '"""', '\\', '\\u{110000}', '\\ud83d', '`${1}`', '{{7*7}}', '<script>', '../../etc/passwd', '#'),
  fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString'),
  fc.string({ unit: 'binary', maxLength: 6 }),
);

const INT64 = ['9007199254740993', '9223372036854775807', '9223372036854775808', '-9223372036854775809'];
const NO_IDS = ['0', '-0', '00', '+1', '1e3', '0x10', ' 1', '\u0661', '9'.repeat(400), ''];
/** Ids at the edges of int64, beyond them, and texts that only look like one. */
export const ids = fc.constantFrom('1', '7', '404404', ...INT64, ...NO_IDS);

/** Mostly the first: what is wrong everywhere is rejected for one reason. */
export function mostly<T>(usual: fc.Arbitrary<T>, weight: number, ...others: fc.Arbitrary<T>[]): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: usual }, ...others);
}

/** What each variable that a document may use is declared as. */
const VARIABLES: Readonly<Record<string, string>> = {
  status: 'PetStatus = SOLD',
  limit: 'Int = 3',
  id: 'ID! = "7"',
  ids: '[ID!]! = ["1", "2", "404404"]',
  input: 'CreatePetInput! = { name: "Momo", categoryId: "3" }',
  yes: 'Boolean! = true',
};

const wrongLiteral = fc.oneof(
  fc.constantFrom('null', 'true', '{}', '[]', '1.5', '1e999', 'NOBODY', '$nobody', '{ __proto__: 1 }', '[[1]]'),
  fc.oneof(nasty, ids).map((text) => JSON.stringify(text)),
);

function literal(type: GraphQLInputType): fc.Arbitrary<string> {
  return mostly(rightLiteral(type), 60, wrongLiteral);
}

function rightLiteral(type: GraphQLInputType): fc.Arbitrary<string> {
  const nullable = getNullableType(type);
  if (isListType(nullable)) {
    return fc.array(literal(nullable.ofType), { maxLength: 5 }).map((items) => `[${items.join(' ')}]`);
  }
  if (isEnumType(nullable)) return fc.constantFrom(...nullable.getValues().map(({ name }) => name));
  if (isInputObjectType(nullable)) {
    const fields = Object.values(nullable.getFields());
    const requiredKeys = fields.filter(isRequiredInputField).map(({ name }) => name);
    return fc
      .record(Object.fromEntries(fields.map((field) => [field.name, literal(field.type)])), { requiredKeys })
      .map(
        (given) =>
          `{ ${Object.entries(given)
            .map(([name, value]) => `${name}: ${value}`)
            .join(' ')} }`,
      );
  }
  switch (nullable.name) {
    case 'Int':
      return mostly(fc.integer({ min: 1, max: 100 }), 20, fc.integer()).map(String);
    case 'ID':
      return mostly(fc.integer({ min: 1, max: 300 }).map(String), 12, ids).map((id) => JSON.stringify(id));
    default:
      return fc.oneof(fc.constantFrom('Momo', ''), nasty).map((text) => JSON.stringify(text));
  }
}

const directives = mostly(
  fc.constant(''),
  12,
  fc.constantFrom('@skip(if: $yes)', '@include(if: $yes)', '@include(if: false)', '@skip(if: true)'),
  fc.constantFrom('', '', '', '@skip', '@include(if: $limit)', '@deprecated', '@skip(if: $yes) @skip(if: $yes)'),
);
/** Most are of one field alone; fields that share one and differ are no valid document. */
const alias = mostly(
  fc.nat(10_000).map((number) => `a${number}: `),
  12,
  fc.constantFrom('', 'a: ', 'id: ', '__proto__: ', 'constructor: ', 'toString: '),
);

function argumentsOf({ args }: GraphQLField<unknown, unknown>): fc.Arbitrary<string> {
  const values = args.map(({ name, type }) =>
    fc.oneof(
      { weight: 6, arbitrary: literal(type).map((value) => `${name}: ${value}`) },
      { weight: 3, arbitrary: fc.constant(`${name}: $${name}`) },
      { weight: String(type).endsWith('!') ? 1 : 6, arbitrary: fc.constant('') },
    ),
  );
  return fc.tuple(...values).map((given) => (given.some(Boolean) ? `(${given.filter(Boolean).join(', ')})` : ''));
}

/** Each of these types has fragments, which may hold each other and themselves. */
const WITH_FRAGMENTS = ['Query', 'Pet', 'RateLimit'] as const;
const FRAGMENTS = WITH_FRAGMENTS.flatMap((type) => ['F', 'G', 'H'].map((letter) => ({ type, name: letter + type })));

function selectionOf(type: GraphQLObjectType): fc.Arbitrary<string> {
  const fields = Object.values(type.getFields()).map((field) => {
    const below = getNamedType(field.type);
    const inner = isObjectType(below) ? selectionOf(below) : fc.constant('');
    const as = field.args.length > 0 ? alias : mostly(fc.constant(''), 8, alias);
    return fc
      .tuple(as, argumentsOf(field), directives, inner)
      .map(([name, args, when, selection]) => `${name}${field.name}${args} ${when} ${selection}`);
  });
  const anyField = fc.oneof(...fields);
  const spreads = FRAGMENTS.filter((one) => one.type === type.name).map(({ name }) => `...${name}`);
  const part = fc.oneof(
    { weight: 60, arbitrary: anyField },
    { weight: 5, arbitrary: fc.constant('__typename') },
    { weight: 1, arbitrary: fc.constantFrom('nobody', 'id', 'pets(limit: 1) { id }', '__schema { types { name } }') },
    { weight: 10, arbitrary: fc.tuple(directives, anyField).map(([when, inner]) => `... ${when} { ${inner} }`) },
    ...(spreads.length > 0 ? [{ weight: 6, arbitrary: fc.constantFrom(...spreads) }] : []),
  );
  return fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => `{ ${parts.join(' ')} }`);
}

const selection = (name: string) => selectionOf(schema.getType(name) as GraphQLObjectType);

/** A document with all fragments and variables that it uses: most are valid, some hold cycles or fields of another type. */
const fromSchema = fc
  .record({
    body: mostly(
      selection('Query').map((text) => `query Main$ ${text}`),
      9,
      selection('Mutation').map((text) => `mutation Main$ ${text}`),
    ),
    fragments: fc.tuple(
      ...FRAGMENTS.map(({ type, name }) => selection(type).map((text) => ` fragment ${name} on ${type} ${text}`)),
    ),
    more: mostly(
      fc.constant(''),
      9,
      fc.constantFrom(' query Other { __typename }', ' fragment No on Pet { id }', ' type T'),
    ),
    declares: mostly(fc.constant('used'), 20, fc.constantFrom('all', 'none')),
  })
  .map(({ body, fragments, more, declares }) => {
    let text = body;
    const added = new Set<string>();
    // Each that is added may use others.
    for (let before = -1; before !== added.size;) {
      before = added.size;
      for (const [index, { name }] of FRAGMENTS.entries()) {
        if (!text.includes(`...${name}`) || added.has(name)) continue;
        added.add(name);
        text += fragments[index];
      }
    }
    const isUsed = (name: string) => new RegExp(`\\$${name}\\b`).test(text);
    const variables = Object.entries(VARIABLES)
      .filter(([name]) => declares === 'all' || (declares === 'used' && isUsed(name)))
      .map(([name, type]) => `$${name}: ${type}`);
    return text.replace('$', () => (variables.length > 0 ? `(${variables.join(', ')})` : '')) + more;
  });

const costly = fc
  .tuple(fc.constantFrom(...COSTLY_DOCUMENTS), fc.double({ min: 0, max: 1.1, noNaN: true }))
  .map(([{ maxSize, of }, share]) => of(Math.ceil(maxSize * share)));

/** A text with some of its characters gone and others in their place. */
export function mutated(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const edit = fc.record({ at: fc.nat(10_000), gone: fc.constantFrom(0, 0, 1, 2, 20), come: nasty });
  return fc.tuple(texts, fc.array(edit, { minLength: 1, maxLength: 4 })).map(([text, edits]) =>
    edits.reduce((result, { at, gone, come }) => {
      const place = result.length === 0 ? 0 : at % result.length;
      return result.slice(0, place) + come + result.slice(place + gone);
    }, text),
  );
}

export const documents = fc.oneof(
  { weight: 24, arbitrary: fromSchema },
  { weight: 4, arbitrary: mutated(fromSchema) },
  { weight: 4, arbitrary: costly },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
);
