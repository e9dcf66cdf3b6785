import { expect, test } from 'vitest';
import { newAccount } from '../../src/throttle/account/account.ts';
import type { Account } from '../../src/throttle/account/format.ts';
import { absorb } from '../../src/throttle/account/merge.ts';

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
