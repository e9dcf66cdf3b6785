import { expect, test } from 'vitest';
import { newAccount, take } from '../../src/throttle/account/account.ts';
import { PLANS } from '../../src/plan.ts';
import type { Account } from '../../src/throttle/account/format.ts';
import { absorb, restore } from '../../src/throttle/account/merge.ts';

/** An account that is paused after a 429. */
function paused(incidentAtMs: number, untilMs: number, incidents = 1): Account {
  const account = newAccount('e');
  Object.assign(account.pause, { incidentAtMs, untilMs, incidents });
  return account;
}

test('of two pauses that were met without Redis, the longer one counts, also where it is older', () => {
  const account = newAccount('e');
  absorb(account, paused(2_000, 34_000));
  absorb(account, paused(1_000, 50_000_000));
  expect(account.pause).toMatchObject({ untilMs: 50_000_000, incidentAtMs: 2_000 });
});

test('the end of a share is no pause of the key', () => {
  const account = newAccount('e');
  absorb(account, paused(0, 61_000, 0));
  expect(account.pause).toMatchObject({ untilMs: 0, incidents: 0 });
});

test('after a loss of Redis one call goes first: others may have called meanwhile', () => {
  const rules = { plan: { ...PLANS.free, known: true }, startedAtMs: 0, leaseMs: 65_000, probeMs: 5_000 };
  const found = newAccount('e', true);
  const seen = newAccount('f', true);
  take(seen, 5, { nowMs: 1_000_000, rules });
  restore(found, seen);
  expect(take(found, 60, { nowMs: 1_001_000, rules }).permits).toHaveLength(1);
});
