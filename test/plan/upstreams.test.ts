import { expect, test } from 'vitest';
import { rowFor } from '../verify/upstreams.ts';

// `npm run verify -- upstreams` walks over 500 others.
test.each(['exact', 'odd', 'hidden'] as const)(
  'upstreams that are %s stop no key and cost few 429s',
  (kind) => {
    expect(rowFor(kind, { firstSeed: 0, seeds: 30 })).toMatchObject({ broken: 0, problems: [] });
  },
  180_000,
);
