import fc from 'fast-check';
import { parse } from 'graphql';
import { expect, test } from 'vitest';
import type { ListingName } from '../../src/caller/call.ts';
import { worstCaseCalls } from '../../src/caller/worst-case.ts';
import type { KnownFacts } from '../../src/caller/worst-case.ts';
import type { Int64 } from '../../src/int64.ts';
import { schema } from '../../src/schema/schema.ts';
import { createCallLimit } from '../../src/server/call-limit.ts';
import { findWanted } from '../../src/server/wanted.ts';

test.each([
  ['lists of every kind, however often', 5, `{ ${aliased(50, 'pets(status: SOLD) { id }')} }`],
  ['ids that are written out, as many as they are, and the listings', 7, '{ petsById(ids: ["1", "2", "3"]) { id } }'],
  ['ids that come later, as many as there may be', 104, 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }'],
  [
    'lists beside ids that come later',
    105,
    `query ($ids: [ID!]!) { petsById(ids: $ids) { id } ${aliased(9, 'pets { id }')} }`,
  ],
  ['a fragment that is used twice', 5, '{ ...one ...one } fragment one on Query { pet(id: "1") { id } }'],
  [
    'the costliest of its operations',
    6,
    'query A { pets { id } } query B { a: pet(id: "1") { id } b: pet(id: "2") { id } }',
  ],
])('a document can cost: %s', (_what, calls, text) => {
  const document = parse(text);
  const most = Math.max(calls, 4);
  expect(createCallLimit({ maxUpstreamCalls: most }).concerns(document)).toBe(false);
  expect(createCallLimit({ maxUpstreamCalls: most - 1 }).concerns(document)).toBe(true);
});

test('no operation costs more than its document can', async () => {
  const field = fc.oneof(
    fc.constantFrom('pets', 'pets(status: SOLD)', 'pets(status: $status)', 'pets(status: PENDING, limit: 3)'),
    fc.constantFrom('1', '2', '3').map((id) => `pet(id: "${id}")`),
    fc.array(fc.constantFrom('4', '5', '6', '7')).map((ids) => `petsById(ids: ${JSON.stringify(ids)})`),
    fc.constant('petsById(ids: $ids)'),
  );
  const fields = (prefix: string) =>
    fc
      .array(field, { minLength: 1, maxLength: 6 })
      .map((all) => all.map((one, index) => `${prefix}${index}: ${one} { id }`));
  const variables = fc.record({
    ids: fc.array(fc.integer({ min: 10, max: 120 }).map(String), { maxLength: 100 }),
    status: fc.constantFrom('AVAILABLE', null),
  });
  const facts = fc.record({
    size: fc.constantFrom('unknown', 'large', 'small'),
    askedInParts: fc.boolean(),
    singleReadsWork: fc.boolean(),
    singleReadsRest: fc.boolean(),
    shownIn: fc.array(fc.constantFrom<ListingName | undefined>('all', 'sold', 'pending', undefined), { minLength: 1 }),
  });
  await fc.assert(
    fc.asyncProperty(fields('own'), fields('shared'), variables, facts, async (own, shared, variableValues, known) => {
      const document = parse(`query ($ids: [ID!]! = [], $status: PetStatus) { ${own.join(' ')} ...more ... { ...more } }
        fragment more on Query { ${shared.join(' ')} }`);
      const { wanted } = await findWanted({ schema, document, variableValues });
      const lastShown = (id: Int64) => known.shownIn[Number(id) % known.shownIn.length];
      const calls = worstCaseCalls(wanted.demands, { ...known, lastShown, knows: () => false, listed: new Set() });
      fc.pre(calls > 0);
      expect(createCallLimit({ maxUpstreamCalls: calls - 1 }).concerns(document)).toBe(true);
    }),
  );
});

function aliased(count: number, field: string): string {
  return Array.from({ length: count }, (_, index) => `f${index}: ${field}`).join(' ');
}

test('where reads of single animals may come back, an operation may cost a call for each and the listings', () => {
  const demands = ['1', '2', '3'].map((id) => ({ kind: 'animal', id: id as Int64 }) as const);
  const facts = {
    size: 'large',
    askedInParts: true,
    knows: () => false,
    listed: new Set<ListingName>(['all']),
    lastShown: () => undefined,
  } as const;
  const cost = (singleReadsWork: boolean, singleReadsRest: boolean) =>
    worstCaseCalls(demands, { ...facts, singleReadsWork, singleReadsRest });
  expect([cost(true, false), cost(true, true), cost(false, true), cost(false, false)]).toEqual([3, 6, 6, 3]);
});

test('what others ask for at the same time may have listings tried, and is announced', () => {
  const cost = (id: string, facts: Partial<KnownFacts>) =>
    worstCaseCalls([{ kind: 'animal', id: id as Int64 }], {
      size: 'large',
      askedInParts: false,
      singleReadsWork: true,
      singleReadsRest: false,
      knows: () => false,
      lastShown: () => undefined,
      listed: new Set(),
      ...facts,
    });
  expect(cost('1', {})).toBe(1);
  expect(cost('1', { size: 'unknown' })).toBe(2);
  expect(cost('1', { size: 'unknown', listed: new Set(['all']) })).toBe(1);
  expect(cost('1', { lastShown: () => 'sold' })).toBe(2);
  // A router that takes digits alone has no such route, and then it is looked for in each listing.
  expect(cost('-1', {})).toBe(5);
});
