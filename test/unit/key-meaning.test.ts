import { expect, test } from 'vitest';
import { meaningOf } from '../../src/upstream/outcome.ts';

test.each([
  ['a pet', 200, 'accepted'],
  ['a new pet', 201, 'accepted'],
  ['nothing, as a firewall also sends it to made-up keys,', 204, 'other'],
])('%s with %i says of the key: %s', (_title, status, meaning) => {
  expect(meaningOf({ kind: 'ok', value: undefined }, status)).toBe(meaning);
});
