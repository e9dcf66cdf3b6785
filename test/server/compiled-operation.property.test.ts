import fc from 'fast-check';
import { Kind, execute, parse, validate } from 'graphql';
import type { GraphQLError, OperationDefinitionNode } from 'graphql';
import { expect, test } from 'vitest';
import { PetqlError } from '../../src/errors.ts';
import type { ResolverContext } from '../../src/schema/builder.ts';
import { schema } from '../../src/schema/schema.ts';
import { createCompiledTexts } from '../../src/server/compiled-texts.ts';
import { createOperationCompiler } from '../../src/server/compiled-operation.ts';
import { createTextMemory } from '../../src/server/text-memory.ts';

/** Directives that do nothing, that leave a field out, and that the variables decide on. */
const directives = fc.constantFrom(
  '',
  '',
  '',
  ' @skip(if: false)',
  ' @include(if: false)',
  ' @skip(if: $yes)',
  ' @include(if: $no) @skip(if: $yes)',
  ' @include(if: $yes)',
);
const alias = fc.constantFrom('', '', '', 'a: ', 'b: ', '__proto__: ', 'constructor: ');

const petSelections = selections(['id', 'name', 'categoryId', 'status', '__typename'], 'Pet');
const windowSelections = selections(
  ['window', 'limit', 'used', 'remaining', 'resetAt', '__typename'],
  'RateLimitWindow',
);

const limits = fc.constantFrom('', '(limit: 2)', '(limit: 0)', '(limit: $limit)', '(status: $status)', '(limit: null)');
const ids = fc.constantFrom('"1"', '"2"', '3', '$id', '"wrong"', '"404"');

const rootField = fc.oneof(
  fc.tuple(alias, limits, directives, petSelections).map(([as, args, when, set]) => `${as}pets${args}${when} ${set}`),
  fc.tuple(alias, ids, directives, petSelections).map(([as, id, when, set]) => `${as}pet(id: ${id})${when} ${set}`),
  fc
    .tuple(alias, fc.array(ids, { maxLength: 4 }), directives, petSelections)
    .map(([as, list, when, set]) => `${as}petsById(ids: [${list.join(' ')}])${when} ${set}`),
  fc.tuple(alias, windowSelections).map(([as, set]) => `${as}rateLimit { plan queued closedUntil windows ${set} }`),
  fc.constant('__typename'),
);

const documents = fc
  .record({
    fields: fc.array(rootField, { minLength: 1, maxLength: 5 }),
    inFragment: fc.array(rootField, { minLength: 1, maxLength: 2 }),
    shown: petSelections,
  })
  .map(
    ({ fields, inFragment, shown }) => `
      query ($yes: Boolean!, $no: Boolean = false, $limit: Int = 3, $status: PetStatus, $id: ID = "2") {
        ${fields.join('\n')} ...more ... @include(if: $yes) { ${fields[0]} }
        used: pets(limit: $limit, status: $status) @skip(if: $no) { ...shown } known: pet(id: $id) @skip(if: $yes) { id }
      }
      fragment more on Query { ${inFragment.join('\n')} }
      fragment shown on Pet ${shown}`,
  )
  .filter((text) => validate(schema, parse(text)).length === 0);

const variables = fc.record(
  {
    yes: fc.boolean(),
    no: fc.constantFrom(true, false),
    limit: fc.constantFrom(1, 0, null),
    status: fc.constantFrom('SOLD', null),
    id: fc.constantFrom('1', 2, 'wrong', '404'),
  },
  { requiredKeys: ['yes'] },
);

/**
 * What a store may hold, and what it must not: a name that is none makes the animal fail, and the list that it is in; a
 * status that nobody knows is null, and an error.
 */
const store = fc.record({
  names: fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constant('\ud800"\\\u2028'), fc.constant(null)), {
    minLength: 1,
    maxLength: 4,
  }),
  status: fc.constantFrom('sold', 'lost'),
  waits: fc.boolean(),
  fails: fc.constantFrom('never', 'never', 'lists', 'animals', 'fault'),
  remaining: fc.constantFrom(5, 3_000_000_000),
});

test('a compiled operation gives what graphql-js gives, to the letter', async () => {
  const memory = createTextMemory();
  // So few that most are compiled again and again.
  const compiledTexts = createCompiledTexts(20);
  await fc.assert(
    fc.asyncProperty(documents, variables, store, async (text, given, held) => {
      const document = parse(text);
      const operation = document.definitions.find(({ kind }) => kind === Kind.OPERATION_DEFINITION);
      const compiled = createOperationCompiler({ schema, document, memory, compiledTexts })(
        operation as OperationDefinitionNode,
      );
      const wanted = await execute({
        schema,
        document,
        variableValues: given,
        contextValue: contextOf(held),
      });
      const context = contextOf(held);
      // Later runs find what earlier ones have written, and what calls have brought at the third.
      for (let run = 0; run < 3; run += 1) {
        const result = await compiled?.withVariables(given)?.(context);
        expect(result?.data).toBe(JSON.stringify(wanted.data));
        expect(plain(result?.errors)).toEqual(plain(wanted.errors));
      }
    }),
    { numRuns: 400 },
  );
});

test('variables that are not as declared are left to graphql-js', () => {
  const compiled = compile(
    'query ($limit: Int!, $yes: Boolean = true) { pets(limit: $limit) @include(if: $yes) { id } }',
  );
  expect(compiled?.withVariables({ limit: 1 })).toBeDefined();
  expect(compiled?.withVariables({})).toBeUndefined();
  expect(compiled?.withVariables({ limit: 'many' })).toBeUndefined();
  expect(compiled?.withVariables({ limit: 1, yes: null })).toBeUndefined();
});

test.each([
  'mutation { createPet(input: { name: "Ada", categoryId: "1" }) { pet { id } } }',
  '{ __schema { types { name } } }',
  '{ pets { id } ...more } fragment more on Query { __type(name: "Pet") { name } }',
])('is not made of %s', (text) => {
  expect(compile(text)).toBeUndefined();
});

test('is not made of a document whose parts depend on more than four variables', () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const of = (some: string[]) =>
    `query (${some.map((name) => `$${name}: Boolean!`).join(' ')}) { ${some.map((name) => `${name}: pets @skip(if: $${name}) { id }`).join(' ')} }`;
  expect(compile(of(names.slice(1)))).toBeDefined();
  expect(compile(of(names))).toBeUndefined();
});

function compile(text: string) {
  const document = parse(text);
  const compileIn = createOperationCompiler({
    schema,
    document,
    memory: createTextMemory(),
    compiledTexts: createCompiledTexts(),
  });
  return compileIn(document.definitions[0] as OperationDefinitionNode);
}

function selections(names: readonly string[], type: string): fc.Arbitrary<string> {
  const field = fc.tuple(alias, fc.constantFrom(...names), directives).map(([as, name, when]) => `${as}${name}${when}`);
  const inline = fc
    .tuple(fc.constantFrom('...', `... on ${type}`), directives, field)
    .map(([spread, when, inner]) => `${spread}${when} { ${inner} }`);
  const parts = fc.array(fc.oneof({ weight: 4, arbitrary: field }, inline), { minLength: 1, maxLength: 4 });
  return parts.map((chosen) => `{ ${chosen.join(' ')} }`);
}

type Held = typeof store extends fc.Arbitrary<infer T> ? T : never;

function contextOf({ names, status: ofOthers, waits, fails, remaining }: Held): ResolverContext {
  const pets = names.map((name, index) => ({
    id: String(index + 1),
    name,
    categoryId: '7',
    status: index === 0 ? undefined : ofOthers,
  })) as any[];
  const failure = () =>
    fails === 'fault' ? new Error('a fault') : new PetqlError('NOT_CACHED', 'nothing is known', { httpStatus: 504 });
  const answer = (what: 'animals' | 'lists', value: unknown): any => {
    if (fails !== what && fails !== 'fault') return waits ? Promise.resolve(value) : value;
    if (waits) return Promise.reject(failure());
    throw failure();
  };
  // The same list for the same question, as memory gives it.
  const lists = new Map<string, unknown>();
  const list = (status: string | undefined, limit: number) => {
    const known = lists.get(`${status} ${limit}`);
    const found = known ?? pets.filter((pet) => !status || pet.status === status).slice(0, limit);
    lists.set(`${status} ${limit}`, found);
    return found;
  };
  const window = { window: 'DAY', limit: 10, used: 5, remaining, resetAt: new Date(0) };
  return {
    pets: {
      list: (status: string | undefined, limit: number) => answer('lists', list(status, limit)),
      byId: (id: string) => answer('animals', pets[Number(id) - 1] ?? null),
    } as any,
    budget: async () =>
      ({
        plan: '"Free"',
        windows: [window, { ...window, resetAt: undefined }],
        queued: 0,
        closedUntil: undefined,
      }) as any,
  };
}

/** In any order: that in which promises reject is nobody's to rely on. */
function plain(errors: readonly GraphQLError[] = []): string[] {
  return errors.map((error) => JSON.stringify({ ...error.toJSON(), message: told(error) })).toSorted();
}

/** What a fault says is masked for whoever asked. */
function told(error: GraphQLError): string {
  return error.originalError instanceof PetqlError || !error.originalError ? error.message : 'a fault';
}
