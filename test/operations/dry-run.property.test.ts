import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Int64 } from '../../src/int64.ts';
import { startEmbedded } from '../support/start-embedded.ts';

const apiKey = 'demo-enterprise';

/** Most of them are in no first listing of a large store, so that the listing that tries to save their calls is in vain. */
const id = fc.constantFrom('1', '101', '180', '200', '240', '404404');
const field = fc.oneof(
  fc.constantFrom('pets { id }', 'pets(status: SOLD) { id }', 'pets(status: PENDING, limit: 3) { name }'),
  id.map((one) => `pet(id: "${one}") { id }`),
  fc.uniqueArray(id, { maxLength: 5 }).map((ids) => `petsById(ids: ${JSON.stringify(ids)}) { id }`),
  fc.constantFrom('pet(id: $id) { id }', 'rateLimit { plan }', 'pets(limit: 1000) { id }'),
);
const selection = fc
  .tuple(field, fc.constantFrom('', '@skip(if: $no) ', '@include(if: $no) ', '@include(if: true) '))
  .map(([text, directive]) => (directive ? text.replace('{', `${directive}{`) : text));
const query = fc.array(selection, { minLength: 1, maxLength: 6 }).map((fields) => {
  const aliased = fields.map((text, index) => `f${index}: ${text}`);
  const [first, ...rest] = aliased;
  return `query ($id: ID! = "150", $no: Boolean = false) { ...F f0: ${first?.slice(4)} } fragment F on Query { ${[first, ...rest].join(' ')} z: pet(id: $id) @skip(if: $no) { id } }`;
});

const scenario = fc.record({
  document: query,
  warmUps: fc.array(query, { maxLength: 2 }),
  animals: fc.constantFrom(undefined, 30),
  withdrawn: fc.boolean(),
  maxAgeMs: fc.constantFrom(0, 60_000),
  cacheControl: fc.constantFrom(undefined, 'no-cache', 'max-age=60', 'only-if-cached'),
  id,
  no: fc.boolean(),
});

test('a dry run calls nothing, and the operation right after it costs no more than it said', async () => {
  await fc.assert(
    fc.asyncProperty(
      scenario,
      async ({ document, warmUps, animals, withdrawn, maxAgeMs, cacheControl, ...variables }) => {
        const seeds = Array.from({ length: animals ?? 0 }, (_, index) => ({
          name: `Pet ${index}`,
          categoryId: '1' as Int64,
          status: 'sold' as const,
        }));
        await using gateway = await startEmbedded({ maxAgeMs }, animals === undefined ? {} : { seeds });
        if (withdrawn) {
          gateway.sandbox.setFault(({ path }) =>
            path.startsWith('/pets/') ? { refused: true, status: 410 } : undefined,
          );
          await gateway.execute({ document: '{ pet(id: "7") { id } }', apiKey });
        }
        for (const one of warmUps) await gateway.execute({ document: one, apiKey });
        const before = gateway.sandbox.calls.length;
        const operation = { document, variables, apiKey, cacheControl };

        const priced = await gateway.execute({ ...operation, dryRun: true });
        expect(gateway.sandbox.calls).toHaveLength(before);
        const { dryRun } = told(priced);

        const { upstreamCalls } = told(await gateway.execute(operation));
        const actual = gateway.sandbox.calls.length - before;
        expect(upstreamCalls).toBe(actual);
        expect(actual).toBeLessThanOrEqual(dryRun.upstreamCalls);
        expect(dryRun.fits).toBe(true);
      },
    ),
    { numRuns: 100 },
  );
}, 60_000);

function told({ extensions }: { extensions?: Record<string, unknown> }) {
  return (extensions ?? {})['petql'] as { upstreamCalls: number; dryRun: { upstreamCalls: number; fits: boolean } };
}
