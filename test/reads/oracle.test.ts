import { describe, expect, test } from 'vitest';
import { compareBriefly } from '../verify/oracle.ts';
import { fewestCalls } from '../verify/oracle/fewest-calls.ts';
import type { Wanted } from '../verify/oracle/trace.ts';

/** The fewest calls for reads at these moments, with data of a second at most. */
function fewest(reads: readonly (readonly [atMs: number, ...Wanted[]])[], pets = 1_000, createdAtMs: number[] = []) {
  const operations = reads.map(([atMs, ...wanted]) => ({ atMs, reads: wanted }));
  return fewestCalls({ pets, operations, createsAtMs: createdAtMs }, createdAtMs, 1_000);
}

describe('somebody who knows the future needs', () => {
  test.each<[calls: number, what: string, reads: Parameters<typeof fewest>[0]]>([
    [
      1,
      'a list that is read again within its age',
      [
        [0, 'all'],
        [1_000, 'all'],
      ],
    ],
    [
      2,
      'a list that is read again after it',
      [
        [0, 'all'],
        [1_001, 'all'],
      ],
    ],
    [
      1,
      'a pet and the list that shows it',
      [
        [0, 5],
        [900, 'all'],
      ],
    ],
    [
      1,
      'two pets that one list shows',
      [
        [0, 5],
        [400, 6],
      ],
    ],
    [
      1,
      'two pets that the list of their status shows',
      [
        [0, 'sold'],
        [400, 150, 300],
      ],
    ],
    [
      2,
      'two pets that no list shows',
      [
        [0, 900],
        [400, 901],
      ],
    ],
    [2, 'a list and a pet that it does not show', [[0, 'all', 101]]],
    [
      2,
      'reads that one call in the middle cannot answer',
      [
        [0, 'all'],
        [800, 'all'],
        [1_600, 'all'],
      ],
    ],
    [2, 'two lists of a large store', [[0, 'all', 'sold']]],
  ])('%i for %s', async (calls, _what, reads) => {
    expect(await fewest(reads)).toBe(calls);
  });

  test('one for all of a store that one list shows whole, and more once it is too large', async () => {
    const everything: [number, ...Wanted[]][] = [[500, 'all', 'available', 'pending', 'sold', 7, 98]];
    expect(await fewest(everything, 99)).toBe(1);
    expect(await fewest(everything, 99, [200])).toBe(4);
  });

  test('another call after a create', async () => {
    expect(
      await fewest(
        [
          [0, 'all'],
          [400, 'all'],
        ],
        50,
        [200],
      ),
    ).toBe(2);
  });
});

test('petql makes hardly more calls than that', async () => {
  const rows = await compareBriefly(1, 120);
  expect(rows.flatMap(({ problems }) => problems)).toEqual([]);
  expect(rows).toHaveLength(3);
});
