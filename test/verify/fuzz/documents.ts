import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { buildSchema, getNamedType, getNullableType, isEnumType, isInputObjectType, isListType } from 'graphql';
import { isObjectType } from 'graphql';
import type { GraphQLField, GraphQLInputType, GraphQLObjectType } from 'graphql';

const schema = buildSchema(readFileSync(new URL('../../../schema/schema.graphql', import.meta.url), 'utf8'));

/** Texts that readers of text stumble over, and names that every JavaScript object has. */
export const nasty = fc.oneof(
  fc.constantFrom('\u0000', '\ufeff', '\ud800', '\udfff', '\u202e', '\u2028', '\u{1f600}', 'e\u0301', '\u0085', '\r\n'),
  fc.constantFrom('"', '"""', '\\', '\\u{110000}', '\\ud83d', '`${1}`', '{{7*7}}', '<script>', '../../etc/passwd', '#'),
  fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString'),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.string({ maxLength: 6 }),
);

const INT64 = ['9007199254740993', '9223372036854775807', '9223372036854775808', '-9223372036854775809'];
const NO_IDS = ['0', '-0', '00', '+1', '1e3', '0x10', ' 1', '\u0661', '9'.repeat(400), ''];
/** Ids at the edges of int64, beyond them, and texts that only look like one. */
export const ids = fc.constantFrom('1', '7', '404404', ...INT64, ...NO_IDS);

/** Mostly the first: what is wrong everywhere is refused for one reason. */
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
  nasty.map((text) => JSON.stringify(text)),
  ids.map((id) => JSON.stringify(id)),
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
    const requiredKeys = fields.filter((field) => String(field.type).endsWith('!')).map(({ name }) => name);
    const values = Object.fromEntries(fields.map((field) => [field.name, literal(field.type)]));
    return fc.record(values, { requiredKeys }).map((given) => {
      const entries = Object.entries(given).map(([name, value]) => `${name}: ${value}`);
      return `{ ${entries.join(' ')} }`;
    });
  }
  switch (getNamedType(type).name) {
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
  if (args.length === 0) return fc.nat(80).map((number) => (number === 0 ? '(limit: 1)' : ''));
  const values = args.map(({ name, type }) =>
    fc.oneof(
      { weight: 6, arbitrary: literal(type).map((value) => `${name}: ${value}`) },
      { weight: 3, arbitrary: fc.constant(`${name}: $${name}`) },
      { weight: String(type).endsWith('!') ? 1 : 6, arbitrary: fc.constant('') },
    ),
  );
  return fc.tuple(...values).map((given) => (given.some(Boolean) ? `(${given.filter(Boolean).join(', ')})` : ''));
}

/** Each of these types has three fragments, which may hold each other and themselves. */
const WITH_FRAGMENTS = ['Query', 'Pet', 'RateLimit'] as const;
const FRAGMENTS = ['F', 'G', 'H'] as const;

function selectionOf(type: GraphQLObjectType): fc.Arbitrary<string> {
  const fields = Object.values(type.getFields()).map((field) => {
    const below = getNamedType(field.type);
    const inner = isObjectType(below) ? selectionOf(below) : fc.constant('');
    const as = field.args.length > 0 ? alias : mostly(fc.constant(''), 8, alias);
    return fc
      .tuple(as, argumentsOf(field), directives, inner)
      .map(([name, args, when, selection]) => `${name}${field.name}${args} ${when} ${selection}`);
  });
  const spreads = FRAGMENTS.map((name) => `...${name}${type.name}`);
  const hasFragments = WITH_FRAGMENTS.some((name) => name === type.name);
  const part = fc.oneof(
    { weight: 60, arbitrary: fc.oneof(...fields) },
    { weight: 5, arbitrary: fc.constant('__typename') },
    {
      weight: 1,
      arbitrary: fc.constantFrom('nobody', 'id', 'pets { id }', '... on Pet { id }', '__schema { types { name } }'),
    },
    {
      weight: 10,
      arbitrary: fc.tuple(directives, fc.oneof(...fields)).map(([when, inner]) => `... ${when} { ${inner} }`),
    },
    { weight: hasFragments ? 6 : 0, arbitrary: fc.constantFrom(...spreads) },
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
    fragments: fc.array(fc.record(Object.fromEntries(WITH_FRAGMENTS.map((name) => [name, selection(name)]))), {
      minLength: FRAGMENTS.length,
      maxLength: FRAGMENTS.length,
    }),
    more: mostly(
      fc.constant(''),
      3,
      fc.constantFrom(' query Other { __typename }', ' fragment No on Pet { id }', ' type T'),
    ),
    declares: mostly(fc.constant('used'), 20, fc.constantFrom('all', 'none')),
  })
  .map(({ body, fragments, more, declares }) => {
    let text = body;
    const defined = new Set<string>();
    // Until a round finds no new one.
    for (let before = -1; before !== defined.size;) {
      before = defined.size;
      for (const [, name = '', letter = '', type = ''] of text.matchAll(/\.\.\.(([FGH])(\w+))/g)) {
        if (defined.has(name)) continue;
        defined.add(name);
        text += ` fragment ${name} on ${type} ${fragments[FRAGMENTS.indexOf(letter as 'F')]?.[type]}`;
      }
    }
    const variables = Object.entries(VARIABLES).filter(
      ([name]) => declares === 'all' || (declares === 'used' && new RegExp(`\\$${name}\\b`).test(text)),
    );
    const list = variables.map(([name, type]) => `$${name}: ${type}`).join(', ');
    return text.replace('$', () => list && `(${list})`) + more;
  });

const times = (count: number, one: (index: number) => string) =>
  Array.from({ length: count }, (_, k) => one(k)).join(' ');
const onQuery = (name: string, inner: string) => `fragment ${name} on Query { ${inner} }`;

/** Documents that cost much and are short, of `many` or of `few` parts. */
const BOMBS: readonly ((many: number, few: number) => string)[] = [
  (many) => `{ ${times(many, (k) => `a${k}: pets { id }`)} }`,
  (many) => `${'{ pets '.repeat(many)}${'}'.repeat(many)}`,
  (many) => `{ pets(limit: ${'['.repeat(many)}${']'.repeat(many)}) { id } }`,
  (_many, few) => `{ ${times(few, () => `pets { ${'id '.repeat(few)} }`)} }`,
  (many) => `{ ...f0 } ${times(many, (k) => onQuery(`f${k}`, `...f${k + 1}`))} ${onQuery(`f${many}`, 'pets { id }')}`,
  (_, few) =>
    `{ ...f0 } ${times(few, (k) => onQuery(`f${k}`, `...f${k + 1} ...f${k + 1}`))} ${onQuery(`f${few}`, 'pets { id }')}`,
  (_, few) =>
    `{ ...f0 } ${times(few, (k) =>
      onQuery(
        `f${k}`,
        times(few, (j) => `...f${j}`),
      ),
    )}`,
  (many) => `{ ${'\n'.repeat(many * 20)} nobody }`,
  (many) => `{ petsById(ids: [${times(many, (k) => `"${k}"`)}]) { id } }`,
  (many) => `query(${times(many, (k) => `$v${k}: Int`)}) { pets(limit: $v0) { id } }`,
  (many) => `{ pets ${'@skip(if: false) '.repeat(many)} { id } }`,
  (_, few) => `{ ${times(few, (k) => `a${k}: petsById(ids: [${times(few * 3, (j) => `"${k * 100 + j}"`)}]) { id }`)} }`,
  (_, few) => times(few, (k) => `query Q${k} { pets { ${'... { '.repeat(few)} id ${'}'.repeat(few)} } }`),
];
const bombs = fc
  .tuple(fc.integer({ min: 1, max: 3_000 }), fc.integer({ min: 1, max: 30 }), fc.constantFrom(...BOMBS))
  .map(([many, few, bomb]) => bomb(many, few));

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
  { weight: 2, arbitrary: bombs },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
);
