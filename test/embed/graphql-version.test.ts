import { version } from 'graphql';
import { expect, test } from 'vitest';

test('petql runs here with the line of graphql that the tests are for', () => {
  expect(version).toMatch(process.env['PETQL_GRAPHQL'] === '16' ? /^16\./ : /^17\./);
});
