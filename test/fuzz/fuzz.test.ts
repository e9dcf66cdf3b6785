import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { messages, wireBytes } from './messages.ts';
import { startSubject } from './subject.ts';
import type { Subject } from './subject.ts';

const EXPECTED = [
  '200 OK',
  '200 BAD_USER_INPUT',
  '200 GRAPHQL_VALIDATION_FAILED',
  '200 LIMIT_EXCEEDED',
  '401 UNAUTHENTICATED',
];

let subject: Subject;

beforeAll(async () => {
  subject = await startSubject();
});
afterAll(() => subject[Symbol.asyncDispose]());

test('whatever is sent is answered as the README says, by both ways alike, at the price that was told', async () => {
  const where = fc.constantFrom('callers' as const, 'callers' as const, 'server' as const);
  await fc.assert(
    fc.asyncProperty(messages, where, (message, side) => subject.tryMessage(message, side)),
    { numRuns: 600, seed: 7 },
  );
  // They are not all refused for one reason.
  const often = [...subject.kinds].flatMap(([kind, answers]) => (answers > 5 ? kind : []));
  expect(often).toEqual(expect.arrayContaining(EXPECTED));
  expect(subject.calls).toBeGreaterThan(30);
}, 60_000);

test('bytes that are hardly HTTP end in a 4xx or a closed connection', async () => {
  await fc.assert(
    fc.asyncProperty(wireBytes, (bytes) => subject.tryBytes(bytes)),
    { numRuns: 150, seed: 7 },
  );
  expect(subject.kinds.get('raw 400')).toBeGreaterThan(5);
  expect(subject.kinds.get('raw 200')).toBeGreaterThan(5);
}, 60_000);
