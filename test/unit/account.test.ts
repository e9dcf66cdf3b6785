import { expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { newAccount, pauseKey, succeed, take } from '../../src/quota/account/account.ts';
import type { AccountRules } from '../../src/quota/account/limits.ts';

const RULES: AccountRules = { plan: { ...PLANS.free, known: true }, startedAtMs: 0, leaseMs: 65_000, probeMs: 5_000 };
/** At the beginning of a slot of time. */
const NOW_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
const SILENT = { headers: undefined, tookMs: 10 };

const at = (ms: number) => ({ nowMs: NOW_MS + ms, rules: RULES });

test('a call counts until half a second after its minute, since the upstream may count it after it responds', () => {
  const account = newAccount('e', true);
  const { permits } = take(account, PLANS.free.perMinute, at(-10));
  for (const permit of permits) succeed(account, permit, SILENT, at(0));

  expect(take(account, 1, at(60_499)).permits).toEqual([]);
  expect(take(account, 60, at(61_000)).permits).toHaveLength(60);
});

test('429s of calls that were in flight together are one incident, so the backoff does not grow', () => {
  const account = newAccount('e', true);
  const { permits } = take(account, 20, at(0));
  const rateLimited = { ...SILENT, retryAfterMs: 0, mayBeBanned: false };
  for (const [index, permit] of permits.entries()) pauseKey(account, permit, rateLimited, at(100 + index));

  expect(take(account, 1, at(6_200)).permits).toHaveLength(1);
});
