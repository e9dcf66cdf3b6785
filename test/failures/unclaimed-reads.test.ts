import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { startEmbedded } from '../support/start-gateway.ts';
import { copyPetql } from '../verify/changed-copy.ts';
import type { ChangedCopy } from '../verify/changed-copy.ts';

const MAX_WAIT_MS = 200;

/** A planner with a defect: it finds no call for one pet and for one list, and does not say that there is none. */
const FORGETFUL = {
  from: 'let left = reads;',
  to: "let left = reads.filter(({ key }) => key !== '7' && key !== 'available');",
};

let copy: ChangedCopy;
let start: typeof startEmbedded;

beforeAll(async () => {
  copy = await copyPetql(FORGETFUL);
  const { href } = pathToFileURL(`${copy.folder}/test/support/start-gateway.ts`);
  ({ startEmbedded: start } = (await import(href)) as { startEmbedded: typeof startEmbedded });
});

afterAll(() => copy[Symbol.asyncDispose]());

test.each([
  ['a list', '{ bad: pets(status: AVAILABLE) { id } }', {}],
  ['a pet', '{ bad: pet(id: 7) { id } }', {}],
  ['one of several pets', '{ bad: pet(id: 7) { id } good: pet(id: 8) { id } }', { good: { id: '8' } }],
  ['a pet beside others', '{ bad: pet(id: 7) { id } good: petsById(ids: [8]) { id } }', { good: [{ id: '8' }] }],
])('a read that no call claims ends at its deadline: %s', async (_case, query, good) => {
  await using gateway = await start({ maxWaitMs: MAX_WAIT_MS });
  const { data, errors } = await gateway.execute({ document: query, apiKey: 'demo-business' });
  const late = expect.objectContaining({ code: 'RATE_LIMITED', retryAfterMs: expect.any(Number) as number }) as unknown;
  expect(errors).toEqual([expect.objectContaining({ path: ['bad'], extensions: late })]);
  expect(data).toEqual({ bad: null, ...good });

  // It leaves nothing behind: others are answered.
  const next = await gateway.execute({ document: '{ pet(id: 9) { id } }', apiKey: 'demo-business' });
  expect(next.data).toEqual({ pet: { id: '9' } });
});
