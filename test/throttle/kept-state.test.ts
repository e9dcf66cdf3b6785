import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { readState } from '../../src/throttle/kept-state.ts';
import { newLedgerState } from '../../src/throttle/ledger-state.ts';
import type { Grant, Ledger, Standing } from '../../src/throttle/ledger.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { mutilated, mutilations, usedState } from './mutilated.ts';

const rules = { plan: { ...PLANS.free, known: true }, probeMs: 5_000 };
const NOW = Date.UTC(2026, 10, 21, 12);

let nowMs = NOW;

function resume(get: () => string | undefined): { ledger: Ledger; lines: readonly Record<string, any>[] } {
  nowMs = NOW + 1_000;
  const { log, lines } = createMemoryLog();
  const file = { get, setAll() {}, forget() {}, close() {} };
  const kept = { file, nameOf: (apiKey: string) => `hash of ${apiKey.length}` };
  return { ledger: createMemoryLedger({ rules, now: () => nowMs, log, kept }), lines };
}

const ask = (ledger: Ledger, wanted = 3) => ledger.exchange('a key', { reports: [], wanted });

function without(path: string): string {
  return mutilated(usedState(rules, NOW), [[path, undefined]]);
}

function figuresOf({ minute, day, waitMs, started, pausedForMs, dayFreeInMs }: Standing): number[] {
  const ofWindows = [minute, day].flatMap(({ limit, used, remaining, resetInMs }) => [
    limit,
    used,
    remaining,
    resetInMs,
  ]);
  return [...ofWindows, waitMs, started, pausedForMs, dayFreeInMs];
}

// One value that made no sense threw in the midst of a call, and ended the process for everybody; or it made the figures NaN, and the
// event loop asked for ever.
test('whatever is kept of a key, every exchange has an answer whose figures make sense', async () => {
  const state = usedState(rules, NOW);
  await fc.assert(
    fc.asyncProperty(mutilations(state), async (changes) => {
      const { ledger } = resume(() => mutilated(state, changes));
      for (let call = 0; call < 5; call += 1) {
        const standing = await ask(ledger);
        expect(figuresOf(standing).filter((figure) => !Number.isFinite(figure))).toEqual([]);
        // Granted nothing, it says why.
        expect(standing.grants.length > 0 || standing.closed !== undefined).toBe(true);
        await ledger.exchange('a key', {
          reports: standing.grants.map((grant) => ({ kind: 'answered', grant, readings: [] })),
          wanted: 0,
        });
        nowMs += 20_000;
      }
    }),
    { numRuns: Number(process.env['FUZZ_RUNS'] ?? 500) },
  );
});

test.each<[string, string]>([
  ...['null', '{}', '[]', '7', '"x"', 'xx', ''].map((text): [string, string] => [`"${text}"`, text]),
  ['a state without what is unanswered', without('unanswered')],
  ['a state without its limit', without('minute.limit')],
])('a key of which %s is kept begins with a probe, and the log says so once, without the key', async (_name, text) => {
  const { ledger, lines } = resume(() => text);
  await ask(ledger, 0);
  await ask(ledger, 0);
  expect((await ask(ledger)).grants).toMatchObject([{ probe: true }]);
  expect(lines).toMatchObject([{ level: 40, msg: expect.stringContaining('makes no sense') }]);
  expect(JSON.stringify(lines)).not.toMatch(/a key|hash of/);
});

// Without the fewest, a window was told to hold NaN calls.
test.each(['fewest', 'fewestLately', 'fewestSince', 'leastLeft', 'toldAtMs'])(
  'a state of a petql that had no `%s` yet goes on as it is',
  (field) => {
    const { state, whole } = readState(without(`minute.${field}`), newLedgerState('now', rules));
    expect(whole).toBe(true);
    expect(state).toMatchObject({ generation: 'of before', started: 5, minute: { mode: 'told', [field]: 0 } });
  },
);

test('what a newer petql has added is no reason to begin anew', () => {
  const text = JSON.stringify({ ...usedState(rules, NOW), added: [1] });
  expect(readState(text, newLedgerState('now', rules)).whole).toBe(true);
});

test('the day and the pause still count where the rest makes no sense', async () => {
  const { ledger } = resume(() =>
    mutilated(usedState(rules, NOW), [
      ['started', 'x'],
      ['pausedUntilMs', NOW + 9_000],
    ]),
  );
  expect(await ask(ledger)).toMatchObject({ closed: 'paused', waitMs: 8_000, day: { mode: 'unknown', used: 5 } });
  nowMs += 8_000;
  expect((await ask(ledger)).grants).toMatchObject([{ probe: true }]);
});

// A file that was written over in place ended the process at the next key that had not been read.
test('a key that cannot be read begins with a probe, and the log says so once', async () => {
  const { ledger, lines } = resume(() => {
    throw new Error('database disk image is malformed');
  });
  const [grant] = (await ask(ledger)).grants as [Grant];
  expect(grant.probe).toBe(true);
  await ledger.exchange('a key', { reports: [{ kind: 'answered', grant, readings: [] }], wanted: 0 });
  await ledger.exchange('another', { reports: [], wanted: 1 });
  expect((await ask(ledger)).grants).toHaveLength(3);
  expect(lines).toMatchObject([
    { level: 50, reason: 'database disk image is malformed', msg: expect.stringContaining('cannot be read') },
  ]);
});
