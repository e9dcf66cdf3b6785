import { expect, test } from 'vitest';
import { newAccount, succeed, take } from '../../src/quota/account/account.ts';
import { PLANS } from '../../src/common/plan.ts';
import type { AssumedPlan } from '../../src/common/plan.ts';
import type { Account } from '../../src/quota/account/format.ts';
import { absorb, restore } from '../../src/quota/account/merge.ts';

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

/** 2027-01-15T08:00:00Z. */
const START_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;

/** A key whose headers describe one window, that ends with each minute or each day: each second some calls, of which it counts all. */
function createKey(limit: number, lengthMs: number, plan: AssumedPlan) {
  const rules = { plan, startedAtMs: 0, leaseMs: 65_000, probeMs: 5_000 };
  let nowMs = START_MS + 5_500;
  let used = 0;
  return {
    /** Uses as many calls a second as the account grants. Returns in how many seconds it granted none. */
    use(account: Account, seconds: number, callsEach: number): number {
      let idle = 0;
      for (let second = 0; second < seconds; second += 1) {
        if ((nowMs + 1_000) % lengthMs < 1_000) used = 0;
        nowMs += 1_000;
        const moment = { nowMs, rules };
        const { permits } = take(account, callsEach, moment);
        idle += permits.length === 0 ? 1 : 0;
        const endsAtMs = Math.floor(nowMs / lengthMs + 1) * lengthMs;
        const reset = { id: endsAtMs / 1_000, inMs: endsAtMs - nowMs };
        for (const permit of permits) {
          used += 1;
          succeed(account, permit, { headers: { limit, used, remaining: limit - used, reset }, tookMs: 20 }, moment);
        }
      }
      return idle;
    },
  };
}

test.each([
  ['ten a second', 10],
  ['two a second', 2],
  ['twelve a second', 12],
])('a key of Business that is made again keeps its minute of 1,000: %s', (_what, callsEach) => {
  const key = createKey(PLANS.business.perMinute, MINUTE_MS, { ...PLANS.free, known: false });
  const seen = newAccount('seen');
  key.use(seen, 20 * 60, callsEach);
  expect(seen.minute.limit).toBe(PLANS.business.perMinute);

  // A replica that was restarted meanwhile makes the first call.
  const found = newAccount('found');
  key.use(found, 1, 1);
  restore(found, seen);
  expect(key.use(found, 15 * 60, callsEach)).toBeLessThanOrEqual(1);
  expect(found.day.limit).toBeUndefined();
});

test('a key of Free that is made again keeps its day of 1,000', () => {
  const key = createKey(PLANS.free.perDay, 86_400_000, { ...PLANS.free, known: false });
  const seen = newAccount('seen');
  key.use(seen, 600, 1);
  const found = newAccount('found');
  key.use(found, 1, 1);
  restore(found, seen);
  expect(found.day.limit).toBe(PLANS.free.perDay);
  expect(found.minute.limit).toBeUndefined();
});
