import fc from 'fast-check';
import { getNamedType, getNullableType, isEnumType, isInputObjectType, isListType, isObjectType } from 'graphql';
import type { GraphQLField, GraphQLInputType, GraphQLObjectType } from 'graphql';
import { schema } from '../../src/schema/schema.ts';

/** Texts that readers of text stumble over: no characters, halves of them, invisible ones, and what JavaScript has on every object. */
export const NASTY: readonly string[] = [
  '\u0000',
  '\ufeff',
  '\ud800',
  '\udfff',
  '\u202e',
  '\u2028',
  '\u{1f600}',
  '\u00e9',
  'e\u0301',
  '\u0085',
  '\r\n',
  '"',
  '"""',
  '\\',
  '\\u{110000}',
  '\\ud83d',
  '`${1}`',
  '{{7*7}}',
  '<script>',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  '#',
];

export const nasty = fc.oneof(
  fc.constantFrom(...NASTY),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.string({ maxLength: 6 }),
);

/** Ids at the edges of int64, beyond them, and such as only look like one. */
export const ids = fc.constantFrom(
  '1',
  '7',
  '100',
  '404404',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '-9223372036854775808',
  '-9223372036854775809',
  '0',
  '-0',
  '00',
  '+1',
  '1e3',
  '0x10',
  ' 1',
  '\u0661',
  '9'.repeat(400),
  '',
);

/** What each variable that a document may use is declared as. */
const VARIABLES: Readonly<Record<string, string>> = {
  status: 'PetStatus = SOLD',
  limit: 'Int = 3',
  id: 'ID! = "7"',
  ids: '[ID!]! = ["1", "2", "404404"]',
  input: 'CreatePetInput! = { name: "Momo", categoryId: "3" }',
  yes: 'Boolean! = true',
  no: 'Boolean = false',
};

/** Each has three fragments, which may hold each other and themselves. */
const OBJECTS: ReadonlySet<string> = new Set(['Query', 'Pet', 'RateLimit']);
const FRAGMENTS = ['F', 'G', 'H'] as const;

const wrongLiteral = fc.oneof(
  fc.constantFrom(
    'null',
    'true',
    '{}',
    '[]',
    '1.5',
    '1e999',
    '9'.repeat(40),
    'NOBODY',
    '$nobody',
    '{ __proto__: 1 }',
    '[[1]]',
  ),
  nasty.map((text) => JSON.stringify(text)),
  ids.map((id) => JSON.stringify(id)),
  ids.filter((id) => /^-?\d+$/.test(id)),
);

function rightLiteral(type: GraphQLInputType): fc.Arbitrary<string> {
  const nullable = getNullableType(type);
  if (isListType(nullable)) {
    return fc.array(literal(nullable.ofType), { maxLength: 5 }).map((items) => `[${items.join(' ')}]`);
  }
  if (isEnumType(nullable)) return fc.constantFrom(...nullable.getValues().map(({ name }) => name));
  if (isInputObjectType(nullable)) {
    const fields = Object.values(nullable.getFields());
    const required = fields.flatMap(({ name, type: inner }) => (String(inner).endsWith('!') ? name : []));
    const values = Object.fromEntries(fields.map(({ name, type: inner }) => [name, literal(inner)]));
    return fc.record(values, { requiredKeys: required }).map(
      (given) =>
        `{ ${Object.entries(given)
          .map(([name, value]) => `${name}: ${value}`)
          .join(' ')} }`,
    );
  }
  switch (getNamedType(type).name) {
    case 'Int':
      return fc
        .oneof({ weight: 20, arbitrary: fc.integer({ min: 1, max: 100 }) }, { weight: 1, arbitrary: fc.integer() })
        .map(String);
    case 'ID':
      return fc
        .oneof({ weight: 12, arbitrary: fc.integer({ min: 1, max: 300 }) }, { weight: 1, arbitrary: ids })
        .map((id) => JSON.stringify(String(id)));
    default:
      return fc.oneof(fc.constantFrom('Momo', ''), nasty).map((text) => JSON.stringify(text));
  }
}

function literal(type: GraphQLInputType): fc.Arbitrary<string> {
  return fc.oneof({ weight: 60, arbitrary: rightLiteral(type) }, { weight: 1, arbitrary: wrongLiteral });
}

const directives = fc.oneof(
  { weight: 50, arbitrary: fc.constant('') },
  {
    weight: 12,
    arbitrary: fc.constantFrom(
      '@skip(if: $yes)',
      '@include(if: $yes)',
      '@skip(if: $no)',
      '@include(if: false)',
      '@skip(if: true)',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('@skip', '@include(if: $limit)', '@deprecated', '@skip(if: $no) @skip(if: $no)'),
  },
);
/** Most are of one field alone; fields that share one and differ are no valid document. */
const alias = fc.oneof(
  { weight: 12, arbitrary: fc.nat(10_000).map((one) => `a${one}: `) },
  { weight: 1, arbitrary: fc.constantFrom('', 'a: ', 'id: ', '__proto__: ', 'constructor: ', 'toString: ') },
);
const noAlias = fc.oneof({ weight: 8, arbitrary: fc.constant('') }, { weight: 1, arbitrary: alias });

/** How an argument is given: as it is declared, as a variable, or as something else. */
function argumentsOf({ args }: GraphQLField<unknown, unknown>): fc.Arbitrary<string> {
  if (args.length === 0) return fc.nat(80).map((one) => (one === 0 ? '(limit: 1)' : ''));
  const values = args.map(({ name, type }) => {
    const required = String(type).endsWith('!');
    return fc.oneof(
      { weight: 6, arbitrary: literal(type).map((value) => `${name}: ${value}`) },
      { weight: 3, arbitrary: fc.constant(`${name}: $${name}`) },
      { weight: required ? 1 : 6, arbitrary: fc.constant('') },
    );
  });
  return fc.tuple(...values).map((given) => (given.some(Boolean) ? `(${given.filter(Boolean).join(', ')})` : ''));
}

function selectionOf(type: GraphQLObjectType): fc.Arbitrary<string> {
  const fields = Object.values(type.getFields()).map((field) => {
    const below = getNamedType(field.type);
    const selection = isObjectType(below) ? selectionOf(below) : fc.constant('');
    return fc
      .tuple(field.args.length > 0 ? alias : noAlias, argumentsOf(field), directives, selection)
      .map(([as, args, when, inner]) => `${as}${field.name}${args} ${when} ${inner}`);
  });
  const inline = fc
    .tuple(fc.constantFrom('...', `... on ${type.name}`), directives, fc.oneof(...fields))
    .map(([spread, when, inner]) => `${spread} ${when} { ${inner} }`);
  const selections = fc.array(
    fc.oneof(
      { weight: 60, arbitrary: fc.oneof(...fields) },
      { weight: 5, arbitrary: fc.constant('__typename') },
      {
        weight: 1,
        arbitrary: fc.constantFrom('nobody', 'id', 'pets { id }', '... on Pet { id }', '__schema { types { name } }'),
      },
      { weight: 10, arbitrary: inline },
      {
        weight: OBJECTS.has(type.name) ? 6 : 0,
        arbitrary: fc.constantFrom(...FRAGMENTS).map((name) => `...${name}${type.name}`),
      },
    ),
    { minLength: 1, maxLength: 5 },
  );
  return selections.map((parts) => `{ ${parts.join(' ')} }`);
}

const selections = Object.fromEntries(
  [...OBJECTS, 'Mutation'].map((name) => [name, selectionOf(schema.getType(name) as GraphQLObjectType)]),
) as Record<string, fc.Arbitrary<string>>;

/** A document with all fragments and variables that it uses: most are valid, some hold cycles or what is of another type. */
const fromSchema = fc
  .record({
    kind: fc.oneof({ weight: 9, arbitrary: fc.constant('query') }, { weight: 1, arbitrary: fc.constant('mutation') }),
    query: selections['Query'] as fc.Arbitrary<string>,
    mutation: selections['Mutation'] as fc.Arbitrary<string>,
    fragments: fc.record(
      Object.fromEntries(
        FRAGMENTS.flatMap((letter) =>
          [...OBJECTS].map((name) => [`${letter}${name}`, selections[name] as fc.Arbitrary<string>]),
        ),
      ),
    ),
    more: fc.constantFrom(
      '',
      '',
      '',
      ' query Other { __typename }',
      ' fragment Unused on Pet { id }',
      ' type T { a: Int }',
    ),
    declared: fc.oneof(
      { weight: 20, arbitrary: fc.constant('used') },
      { weight: 1, arbitrary: fc.constantFrom('all', 'none') },
    ),
  })
  .map(({ kind, query, mutation, fragments, more, declared }) => {
    const body = kind === 'query' ? query : mutation;
    let text = body;
    const defined = new Set<string>();
    // Until no new one is used.
    for (let before = -1; before !== defined.size;) {
      before = defined.size;
      for (const [, name = ''] of text.matchAll(/\.\.\.([FGH]\w+)/g)) {
        const own = fragments[name];
        if (own === undefined || defined.has(name)) continue;
        defined.add(name);
        text += ` fragment ${name} on ${name.slice(1)} ${own}`;
      }
    }
    const variables = Object.entries(VARIABLES).filter(
      ([name]) => declared === 'all' || (declared === 'used' && new RegExp(`\\$${name}\\b`).test(text)),
    );
    const list = variables.map(([name, type]) => `$${name}: ${type}`).join(', ');
    return `${kind} Main${list && `(${list})`} ${text}${more}`;
  });

/** What costs much and asks for little. */
const bombs = fc
  .tuple(fc.integer({ min: 1, max: 3_000 }), fc.integer({ min: 1, max: 30 }), fc.integer({ min: 0, max: 12 }))
  .map(([many, few, kind]) => {
    const times = (count: number, one: (index: number) => string) =>
      Array.from({ length: count }, (_, k) => one(k)).join(' ');
    switch (kind) {
      case 0:
        return `{ ${times(many, (k) => `a${k}: pets { id }`)} }`;
      case 1:
        return `${'{ pets '.repeat(many)}${'}'.repeat(many)}`;
      case 2:
        return `{ pets(limit: ${'['.repeat(many)}${']'.repeat(many)}) { id } }`;
      case 3:
        return `{ ${times(few, () => `pets { ${'id '.repeat(few)} }`)} }`;
      case 4:
        return `{ ...f0 } ${times(many, (k) => `fragment f${k} on Query { ...f${k + 1} }`)} fragment f${many} on Query { pets { id } }`;
      case 5:
        return `{ ...f0 } ${times(few, (k) => `fragment f${k} on Query { ...f${k + 1} ...f${k + 1} }`)} fragment f${few} on Query { pets { id } }`;
      case 6:
        return `{ ...f0 } ${times(few, (k) => `fragment f${k} on Query { ${times(few, (j) => `...f${j}`)} }`)}`;
      case 7:
        return `{ ${'\n'.repeat(many * 20)} nobody }`;
      case 8:
        return `{ petsById(ids: [${times(many, (k) => `"${k}"`)}]) { id } }`;
      case 9:
        return `query(${times(many, (k) => `$v${k}: Int`)}) { pets(limit: $v0) { id } }`;
      case 10:
        return `{ pets ${'@skip(if: false) '.repeat(many)} { id } }`;
      case 11:
        return `{ ${times(few, (k) => `a${k}: petsById(ids: [${times(few * 3, (j) => `"${k * 100 + j}"`)}]) { id }`)} }`;
      default:
        return times(few, (k) => `query Q${k} { pets { ${'... { '.repeat(few)} id ${'}'.repeat(few)} } }`);
    }
  });

/** A text with some of its characters gone and others in their place. */
export function mutated(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const edit = fc.record({ at: fc.nat(10_000), gone: fc.constantFrom(0, 0, 1, 2, 20), come: nasty });
  return fc.tuple(texts, fc.array(edit, { minLength: 1, maxLength: 4 })).map(([text, edits]) => {
    let result = text;
    for (const { at, gone, come } of edits) {
      const place = result.length === 0 ? 0 : at % result.length;
      result = result.slice(0, place) + come + result.slice(place + gone);
    }
    return result;
  });
}

export const documents = fc.oneof(
  { weight: 24, arbitrary: fromSchema },
  { weight: 4, arbitrary: mutated(fromSchema) },
  { weight: 2, arbitrary: bombs },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
);
