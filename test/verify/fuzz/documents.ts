import fc from 'fast-check';
import { COSTLY_DOCUMENTS } from '../costly-documents.ts';
import { ENUM_NAMES, FIELDS, FIELD_NAMES, FILTERS, NEW_PET_FIELD_NAMES } from '../../support/pet-api/contract.ts';
import { grammar, mutated, nasty } from './grammar.ts';
import type { Rules } from './grammar.ts';

/** Values of both documents and variables. Ids are at the edges of int64, beyond them, or only look like one. */
export const VALUES: Rules = {
  id: '6* "<petId>" | 6* <petId> | <oddId>',
  petId: '1 | 2 | 7 | 33 | 90 | 123 | 250 | 404404',
  oddId: `"9007199254740993" | "9223372036854775807" | "9223372036854775808" | "-9223372036854775809" | "0" | "-0" | "00" |
    "+1" | "1e3" | "0x10" | " 1" | "\u0661" | "${'9'.repeat(400)}" | ""`,
  int: '9* 1 | 9* 5 | 9* 20 | 9* 100 | 0 | 101 | -1 | 2147483648',
  name: '6* "Momo" | "" | <nasty>',
  idempotencyKey: '"one" | "two" | " " | <nasty>',
  boolean: 'true | false',
  wrong: 'null | true | {} | [] | 1.5 | 1e999 | [[1]] | <nasty>',
};

/** The fields that each new pet has, with the rules of their values. */
export const NEW_PET_FIELDS = NEW_PET_FIELD_NAMES.flatMap((name): (readonly [name: string, rule: string])[] => {
  switch (FIELDS[name].kind) {
    case 'int64':
      return [[name, '<id>']];
    case 'text':
      return [[name, '<name>']];
    case 'enum':
      return [];
  }
});
const FILTER_ARGUMENTS = FILTERS.map((name) => `${name}: <${name}>`).join(', ');

/** Most documents are valid; some have cycles, fields of another type, or values of none. */
const DOCUMENT: Rules = {
  document: `20* <query> | 3* mutation Main$ { <creates> } | <query> query Other { __typename } |
    <query> fragment No on Pet { id } | <query> type T`,
  query: 'query Main$ { <fields> }',
  fields: '<field> | 3* <field> <fields>',
  field: `__typename | 5* <list> | 5* <pet> | 3* <petsById> | 3* <rateLimit> | ... <when> { <fields> } | ...<letter>Query |
    __schema { types { name } } | nobody`,
  list: '<alias>pets<listArguments> <when> { <petFields> }',
  listArguments: ` | (limit: <limit>) | (${FILTER_ARGUMENTS}) | (${FILTER_ARGUMENTS}, limit: <limit>)`,
  pet: '<alias>pet(id: <idValue>) <when> { <petFields> }',
  petsById: '<alias>petsById(ids: <idsValue>) <when> { <petFields> }',
  rateLimit: '<alias>rateLimit <when> { <rateLimitFields> }',
  creates: '<create> | <create> <creates>',
  create: '<alias>createPet(input: <input>) { pet { <petFields> } userErrors { field code message } }',
  petFields: 'id | 4* <petField> <petFields>',
  petField: `${FIELD_NAMES.map((name) => `9* ${name}`).join(' | ')} | 4* ...<letter>Pet | 3* ... on Pet <when> { id } |
    a: name | nobody`,
  rateLimitFields: 'plan | 3* <rateLimitField> <rateLimitFields>',
  rateLimitField:
    '9* queued | 9* pausedUntil | 9* windows { window limit used remaining resetAt } | 4* ...<letter>RateLimit | limit',
  letter: 'F | G | H',
  alias: '20* a<petId>: | 20* b<petId>: | 3*  | id: | __proto__: | constructor:',
  when: '20*  | @skip(if: $yes) | @include(if: <boolean>) | @skip | @include(if: $limit) | @deprecated | @skip(if: true) @skip(if: $yes)',
  ...Object.fromEntries(ENUM_NAMES.map((name) => [name, valuesOf(name)])),
  limit: '20* <int> | 9* $limit | $nobody | <wrong>',
  idValue: '40* <id> | 9* $id | <wrong>',
  idsValue: '20* [<idList>] | 9* $ids | <wrong>',
  idList: '<id> | 4* <id> <idList>',
  input: `20* { ${NEW_PET_FIELDS.map(([name, value]) => `${name}: ${value}`).join(' ')}<more> } | 9* $input |
    { __proto__: 1 } | <wrong>`,
  more: ` | ${ENUM_NAMES.map((name) => ` ${name}: <${name}>`).join(' | ')} |  idempotencyKey: <idempotencyKey>`,
};

/** What each variable that a document may use is declared as. */
const VARIABLES: Rules = {
  ...Object.fromEntries(ENUM_NAMES.map((name) => [name, `${FIELDS[name].type} = ${anyValueOf(name)}`])),
  limit: 'Int = 3',
  id: 'ID! = "7"',
  ids: '[ID!]! = ["1", "2", "404404"]',
  input: 'CreatePetInput! = { name: "Momo", categoryId: "3" }',
  yes: 'Boolean! = true',
};

function valuesOf(name: (typeof ENUM_NAMES)[number]): string {
  const values = FIELDS[name].values.map((value) => `9* ${value.toUpperCase()}`);
  return `${values.join(' | ')} | 9* $${name} | NOBODY | <wrong>`;
}

/** Returns a value as GraphQL writes it. */
export function anyValueOf(name: (typeof ENUM_NAMES)[number]): string {
  return FIELDS[name].values.at(-1)?.toUpperCase() ?? '';
}

const texts = grammar({ ...VALUES, ...DOCUMENT }, { nasty: nasty.map((text) => JSON.stringify(text)) });
const rule = (name: string) => texts[name] as fc.Arbitrary<string>;

/** Each of these types has fragments, which may hold each other and themselves. */
const FRAGMENTS = { Query: rule('fields'), Pet: rule('petFields'), RateLimit: rule('rateLimitFields') };
const fragments = fc.record(
  Object.fromEntries(
    Object.entries(FRAGMENTS).flatMap(([type, fields]) =>
      ['F', 'G', 'H'].map((letter) => [letter + type, fields.map((text) => `on ${type} { ${text} }`)] as const),
    ),
  ),
);

/** A document with the fragments and variables that it uses, or now and then all variables or none. */
const complete = fc
  .tuple(rule('document'), fragments, fc.constantFrom(...Array.from({ length: 20 }, () => 'used'), 'all', 'none'))
  .map(([document, bodies, declares]) => {
    let text = document;
    const added = new Set<string>();
    // Each that is added may use others.
    for (let before = -1; before !== added.size;) {
      before = added.size;
      for (const [name, body] of Object.entries(bodies)) {
        if (!text.includes(`...${name}`) || added.has(name)) continue;
        added.add(name);
        text += ` fragment ${name} ${body}`;
      }
    }
    const variables = Object.entries(VARIABLES)
      .filter(([name]) => declares === 'all' || (declares === 'used' && new RegExp(`\\$${name}\\b`).test(text)))
      .map(([name, type]) => `$${name}: ${type}`);
    return text.replace('$', () => (variables.length > 0 ? `(${variables.join(', ')})` : ''));
  });

const costly = fc
  .tuple(fc.constantFrom(...COSTLY_DOCUMENTS), fc.constantFrom(0.01, 0.1, 0.3, 0.6, 0.9, 1, 1.2))
  .map(([{ maxSize, of }, share]) => of(Math.ceil(maxSize * share)));

export const documents = fc.oneof(
  { weight: 24, arbitrary: complete },
  { weight: 4, arbitrary: mutated(complete) },
  { weight: 6, arbitrary: costly },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
);
