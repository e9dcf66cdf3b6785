import { expect, test } from 'vitest';
import { evidenceOf } from '../../src/upstream/evidence.ts';

test.each([
  ['a pet', 200, 'accepted'],
  ['a new pet', 201, 'accepted'],
  ['nothing, as a firewall also sends it to made-up keys,', 204, 'other'],
])('%s with %i says of the key: %s', (_title, status, meaning) => {
  const ended = { sent: true, status, headers: undefined, isList: false, isCached: false };
  expect(evidenceOf({ kind: 'ok', value: undefined }, ended)).toMatchObject({ meaning });
});
