import { expect, test } from 'vitest';
import { silentLog } from '../../src/log.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';

test('whoever only looks is not written down, and whoever calls is', async () => {
  const written: string[] = [];
  const file = {
    get: () => undefined,
    setAll: (entries: Iterable<readonly [string, string]>) => void written.push(...[...entries].map(([name]) => name)),
    forget: () => undefined,
    close: () => undefined,
  };
  const ledger = createMemoryLedger({
    rules: { plan: { perMinute: 10, perDay: 300, known: true }, probeMs: 5_000 },
    now: () => Date.UTC(2026, 10, 21, 12),
    log: silentLog,
    kept: { file, nameOf: (apiKey) => apiKey },
  });
  await ledger.exchange('looks', { reports: [], wanted: 0 });
  await ledger.exchange('calls', { reports: [], wanted: 1 });
  const { day } = await ledger.exchange('calls', { reports: [], wanted: 0 });
  expect(day.used).toBe(1);
  await ledger.close();
  expect(written).toEqual(['ledger:calls']);
});
