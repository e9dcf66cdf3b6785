import { expect, test, vi } from 'vitest';
import { silentLog } from '../../src/log.ts';
import type { Log } from '../../src/log.ts';
import type { StateFile } from '../../src/store/state-file.ts';
import type { Grant, Ledger } from '../../src/throttle/ledger.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createMemoryLog } from '../support/memory-log.ts';

function openLedger(file: StateFile, log: Log = silentLog): Ledger {
  return createMemoryLedger({
    rules: { plan: { perMinute: 10, perDay: 300, known: true }, probeMs: 5_000 },
    now: () => Date.UTC(2026, 10, 21, 12),
    log,
    kept: { file, nameOf: (apiKey) => apiKey },
  });
}

test('whoever only looks is not written down, and whoever calls is', async () => {
  const written: string[] = [];
  const file = {
    get: () => undefined,
    setAll: (entries: Iterable<readonly [string, string]>) => void written.push(...[...entries].map(([name]) => name)),
    forget: () => undefined,
    close: () => undefined,
  };
  const ledger = openLedger(file);
  await ledger.exchange('looks', { reports: [], wanted: 0 });
  await ledger.exchange('calls', { reports: [], wanted: 1 });
  const { day } = await ledger.exchange('calls', { reports: [], wanted: 0 });
  expect(day.used).toBe(1);
  await ledger.close();
  expect(written).toEqual(['ledger:calls']);
});

test('an answer that comes after the end is neither written nor complained of', async () => {
  vi.useFakeTimers();
  let open = true;
  const file = {
    get: () => undefined,
    setAll() {
      if (!open) throw new Error('database is not open');
    },
    forget: () => undefined,
    close: () => void (open = false),
  };
  const { log, lines } = createMemoryLog();
  const ledger = openLedger(file, log);
  const [grant] = (await ledger.exchange('calls', { reports: [], wanted: 1 })).grants;
  await ledger.close();
  await ledger.exchange('calls', { reports: [{ kind: 'answered', grant: grant as Grant, readings: [] }], wanted: 0 });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(lines).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});
