import { expect, test } from 'vitest';
import { walkBriefly } from '../verify/upstreams.ts';
import { KINDS, MIXED } from '../verify/upstreams/kinds.ts';

// `npm run verify -- upstreams` walks over 16 others of each kind, for 50 hours each.
test.each([...KINDS, MIXED].filter(({ hasNoGoal }) => !hasNoGoal))(
  '$name: a key gets what can be had',
  async (kind) => {
    expect(await walkBriefly(kind, { seed: 0, hours: 5, isFree: true })).toEqual([]);
  },
);
