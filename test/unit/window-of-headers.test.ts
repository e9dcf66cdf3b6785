import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { newAccount, succeed, take } from '../../src/quota/account/account.ts';
import { limitsOf } from '../../src/quota/account/limits.ts';
import type { AccountRules } from '../../src/quota/account/limits.ts';
import type { HeaderLimits } from '../../src/quota/account/header-limits.ts';

const MIDNIGHT_MS = Date.UTC(2026, 10, 22);
const LATE_MS = MIDNIGHT_MS - 100_000;
/** Free's day, of which the upstream has counted so many calls: 1,000 is Business's minute too. */
const day = (used: number): HeaderLimits => ({
  limit: PLANS.free.perDay,
  remaining: PLANS.free.perDay - used,
  used,
  reset: { inMs: MIDNIGHT_MS - LATE_MS, id: MIDNIGHT_MS / 1_000 },
});

describe('shortly before midnight, a limit of 1,000 is the day of a Free key', () => {
  test.each([
    // A proxy answered in place of the upstream.
    { title: 'after two responses without headers', plan: 'auto', before: [undefined, undefined] },
    // A settlement was applied twice, or the upstream counts late.
    {
      title: 'where more calls are known than it counts, with the plan configured',
      plan: 'free',
      before: [day(1), day(1)],
    },
  ] as const)('$title', ({ plan, before }) => {
    const rules: AccountRules = {
      plan: { ...PLANS.free, known: plan === 'free' },
      startedAtMs: 0,
      leaseMs: 65_000,
      probeMs: 5_000,
    };
    const account = newAccount('e', true);
    const moment = { nowMs: LATE_MS, rules };
    for (const headers of [...before, day(1)]) {
      const [permit] = take(account, 1, moment).permits;
      if (permit) succeed(account, permit, { headers, tookMs: 10 }, moment);
    }
    expect(account.minute.limit).toBeUndefined();
    expect(limitsOf(account, rules.plan).day).toBe(PLANS.free.perDay);
  });
});
