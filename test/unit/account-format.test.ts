import { expect, test } from 'vitest';
import { newAccount, take } from '../../src/quota/account/account.ts';
import { ACCOUNT } from '../../src/quota/account/format.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 9, 41, 7);

test('an account of version 0.3 counts on, without what its 429s had taught', () => {
  const account = newAccount('e', true);
  const rules = {
    plan: { perMinute: 60, perDay: 1_000, known: true },
    startedAtMs: 0,
    leaseMs: 65_000,
    probeMs: 5_000,
  };
  take(account, 40, { nowMs: NOW_MS, rules });
  const stored = JSON.parse(JSON.stringify(account)) as Record<string, object>;
  const old = {
    ...stored,
    minute: { ...stored['minute'], lowered: { to: 45, sinceMs: NOW_MS, untilMs: NOW_MS + 21_600_000 } },
    pace: { perSecond: 3, sinceMs: NOW_MS },
  };
  expect(take(ACCOUNT.parse(old), 60, { nowMs: NOW_MS + 1_000, rules }).permits).toHaveLength(20);
});
