import { expect, test } from 'vitest';
import type { ListingName } from '../../src/caller/call.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { createWaitingSet } from '../../src/caller/waiting-set.ts';
import type { Waiting } from '../../src/caller/waiting-set.ts';
import type { Int64 } from '../../src/int64.ts';

test('whoever wants younger answers does not wait with those that an aged listing has told enough', () => {
  const ALL: ReadonlySet<ListingName> = new Set(['all']);
  // A minute ago it was listed.
  const listed = (sinceMs: number) => (sinceMs <= 40_000 ? ALL : new Set<ListingName>());
  const waiting = createWaitingSet<Waiting>({ elapsed: () => 100_000 }, { listed, lastShown: () => undefined });
  const join = (maxAge: number) =>
    waiting.join(
      { kind: 'animal', id: '1' as Int64 },
      { freshness: readFreshness(`max-age=${maxAge}`, { maxAgeMs: 1_000, maxStaleMs: 600_000 }), deadlineMs: 110_000 },
    );
  const old = join(300);
  expect([...old.seen]).toEqual(['all']);
  const young = join(1);
  expect(young).not.toBe(old);
  expect([...young.seen]).toEqual([]);
  // What is young enough for the one is young enough for the other.
  expect(join(300).seen.size).toBeLessThanOrEqual(1);
  expect(waiting.open.size).toBe(2);
});
