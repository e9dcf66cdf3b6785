import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openStateFile } from '../../src/store/state-file.ts';
import { createCallerNames } from '../../src/throttle/caller-names.ts';
import type { LedgerRules } from '../../src/throttle/ledger-state.ts';
import type { Grant, Ledger, Report } from '../../src/throttle/ledger.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { runPetql, startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-state-'));
});
afterEach(() => rm(folder, { recursive: true }));

describe('a ledger with a state file', () => {
  const rules: LedgerRules = { plan: { perMinute: 60, perDay: 1_000, known: true }, probeMs: 5_000 };
  const { log, lines } = createMemoryLog();
  let nowMs = Date.UTC(2026, 10, 21, 12);
  let copies = 0;

  const open = (plan = rules.plan): Ledger => openAt(join(folder, 'state.db'), plan);

  function openAt(path: string, plan: LedgerRules['plan']): Ledger {
    const now = () => nowMs;
    const file = openStateFile(path, now);
    return createMemoryLedger({
      rules: { ...rules, plan },
      now,
      log,
      kept: { file, nameOf: createCallerNames('a secret of the test') },
    });
  }

  /** What is on the disk, as a kill would leave it now, with how many calls of the day are known there. */
  async function copyOf(name: string): Promise<{ path: string; used: number }> {
    copies += 1;
    const path = join(folder, `copy ${copies}.db`);
    for (const part of ['', '-wal']) await copyFile(join(folder, name + part), path + part);
    const look = join(folder, `look ${copies}.db`);
    for (const part of ['', '-wal']) await copyFile(path + part, look + part);
    const file = openStateFile(look, () => nowMs);
    const text = file.get(`ledger:${createCallerNames('a secret of the test')('a key')}`);
    file.close();
    return { path, used: text === undefined ? 0 : (JSON.parse(text) as { started: number }).started };
  }

  async function spend(ledger: Ledger, calls: number): Promise<void> {
    const [probe] = (await ledger.exchange('a key', { reports: [], wanted: 1 })).grants;
    const { grants } = await ledger.exchange('a key', { reports: [answered(probe as Grant)], wanted: calls - 1 });
    await ledger.exchange('a key', { reports: grants.map(answered), wanted: 0 });
  }

  const answered = (grant: Grant): Report => ({ kind: 'answered', grant, readings: [] });
  const standing = (ledger: Ledger) => ledger.exchange('a key', { reports: [], wanted: 0 });

  test('goes on with the day that was spent', async () => {
    const first = open();
    await spend(first, 40);
    await first.close();
    const second = open();
    expect((await standing(second)).day).toMatchObject({ used: 40, remaining: 950 });
    await second.close();
  });

  test('goes on with a pause', async () => {
    const first = open();
    const [grant] = (await first.exchange('a key', { reports: [], wanted: 1 })).grants as [Grant];
    const refusal = { retryAfterMs: 60_000, ban: false, jitter: 0 };
    await first.exchange('a key', { reports: [{ kind: 'refused', grant, readings: [], refusal }], wanted: 0 });
    await first.close();
    nowMs += 20_000;
    const second = open();
    expect((await standing(second)).pausedForMs).toBe(41_000);
    await second.close();
  });

  test('probes before it believes what was left of a minute', async () => {
    const first = open();
    const [probe] = (await first.exchange('a key', { reports: [], wanted: 1 })).grants as [Grant];
    const reading = { window: 'minute' as const, limit: 60, remaining: 50, resetInMs: 50_000, resetId: nowMs + 50_000 };
    const report: Report = { kind: 'answered', grant: probe, readings: [{ ...reading, otherLimit: undefined }] };
    await first.exchange('a key', { reports: [report], wanted: 0 });
    await first.close();
    const second = open();
    expect((await second.exchange('a key', { reports: [], wanted: 9 })).grants).toMatchObject([{ probe: true }]);
    await second.close();
  });

  test('heeds the right plan again at once where a wrong one was configured in between', async () => {
    const limits: number[] = [];
    for (const perDay of [10_000, 1_000, 10_000]) {
      const ledger = open({ perMinute: 60, perDay, known: true });
      const [grant] = (await ledger.exchange('a key', { reports: [], wanted: 1 })).grants as [Grant];
      limits.push((await ledger.exchange('a key', { reports: [answered(grant)], wanted: 0 })).day.limit);
      await ledger.close();
      nowMs += 2_000;
    }
    expect(limits).toEqual([10_000, 1_000, 10_000]);
  });

  test('knows that nothing is left of a minute until it ends', async () => {
    const first = open();
    const [probe] = (await first.exchange('a key', { reports: [], wanted: 1 })).grants as [Grant];
    const reading = { window: 'minute' as const, limit: 60, remaining: 0, resetInMs: 50_000, resetId: nowMs + 50_000 };
    const report: Report = { kind: 'answered', grant: probe, readings: [{ ...reading, otherLimit: undefined }] };
    await first.exchange('a key', { reports: [report], wanted: 0 });
    await first.close();
    nowMs += 20_000;
    const second = open();
    expect(await second.exchange('a key', { reports: [], wanted: 9 })).toMatchObject({
      grants: [],
      closed: 'minute',
      minute: { mode: 'told', used: 60, remaining: 0 },
    });
    nowMs += 31_000;
    expect((await second.exchange('a key', { reports: [], wanted: 9 })).grants).toMatchObject([{ probe: true }]);
    await second.close();
  });

  test('does not hold the key, nor a hash that anybody could make', async () => {
    const ledger = open();
    await spend(ledger, 2);
    await ledger.close();
    const { readFile } = await import('node:fs/promises');
    const bytes = await readFile(join(folder, 'state.db'), 'latin1');
    expect(bytes).toContain(createCallerNames('a secret of the test')('a key'));
    expect(bytes).not.toContain('a key');
  });

  test('forgets what nobody has set for days, and never the secret that it is kept under', () => {
    const path = join(folder, 'old.db');
    const first = openStateFile(path, () => 0);
    expect(first.keySecret(() => 'made once')).toBe('made once');
    first.setAll([['ledger:somebody', '{}']]);
    first.close();
    const second = openStateFile(path, () => 1_000);
    second.forget(500);
    expect(second.get('ledger:somebody')).toBeUndefined();
    expect(second.keySecret(() => 'made anew')).toBe('made once');
    second.close();
  });

  // Where headers tell of the day alone, the calls that a kill had lost were sent once more in the same minute.
  test.each([
    ['free', 60, 1_000, 4],
    ['business', 1_000, 100_000, 499],
  ])('of %s keeps to a counted minute where the process was killed', async (_name, perMinute, perDay, unwritten) => {
    const killed = open({ perMinute, perDay, known: true });
    const [probe] = (await killed.exchange('a key', { reports: [], wanted: 1 })).grants as [Grant];
    await killed.exchange('a key', { reports: [answered(probe)], wanted: 0 });
    await expect.poll(() => copyOf('state.db').then(({ used }) => used)).toBe(1);
    await killed.exchange('a key', { reports: [], wanted: unwritten });
    const left = await copyOf('state.db');
    await killed.close();
    expect(left.used).toBe(1);
    const next = openAt(left.path, { perMinute, perDay, known: true });
    const first = await next.exchange('a key', { reports: [], wanted: perMinute });
    expect(first.grants).toMatchObject([{ probe: true }]);
    const second = await next.exchange('a key', { reports: first.grants.map(answered), wanted: perMinute });
    expect(1 + unwritten + 1 + second.grants.length).toBe(perMinute);
    // Ended at once, it leaves that in doubt for the next; and a minute later it counts no more.
    await next.close();
    nowMs += 75_000;
    const last = openAt(left.path, { perMinute, perDay, known: true });
    nowMs += 75_000;
    const [again] = (await last.exchange('a key', { reports: [], wanted: perMinute })).grants as [Grant];
    const { grants } = await last.exchange('a key', { reports: [answered(again)], wanted: perMinute });
    expect(grants).toHaveLength(perMinute - 1);
    await last.close();
  });

  test('writes later what it could not write', async () => {
    let full = true;
    let tries = 0;
    const written = new Map<string, string>();
    const setAll = (entries: Iterable<readonly [string, string]>) => {
      tries += 1;
      if (full) failToWrite();
      for (const [name, value] of entries) written.set(name, value);
    };
    const file = { get: () => undefined, forget: () => {}, close: () => {}, setAll };
    const kept = { file, nameOf: (apiKey: string) => apiKey };
    const ledger = createMemoryLedger({ rules, now: () => nowMs, log: createMemoryLog().log, kept });
    await spend(ledger, 40);
    const triesOfExchanges = tries;
    // Nothing more is exchanged; what was put off is tried, in vain.
    await expect.poll(() => tries).toBeGreaterThan(triesOfExchanges);
    full = false;
    await expect.poll(() => written.get('ledger:a key')).toBeDefined();
    expect(JSON.parse(written.get('ledger:a key') ?? '')).toMatchObject({ started: 40 });
    await ledger.close();
  });

  test('goes on where it cannot write, and says so once', async () => {
    const file = { get: () => undefined, forget: () => {}, close: () => {}, setAll: failToWrite };
    const kept = { file, nameOf: (apiKey: string) => apiKey };
    const ledger = createMemoryLedger({ rules, now: () => nowMs, log, kept });
    await spend(ledger, 40);
    await spend(ledger, 5);
    expect((await standing(ledger)).day.used).toBe(45);
    expect(lines.filter(({ msg }) => String(msg).includes('cannot be written'))).toHaveLength(1);
  });
});

function failToWrite(): never {
  throw new Error('database or disk is full');
}

describe('petql with a state file', () => {
  const query = async ({ address }: PetqlProcess, document: string, key = 'demo-free') => {
    const response = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ query: document }),
    });
    return (await response.json()) as { data: any; errors?: any[] };
  };
  const DAY = '{ rateLimit { windows { window used } } }';

  test('loses less than one call in a hundred of the day to kill -9', async () => {
    const args = ['--port', '0', '--plan', 'free', '--state-file', join(folder, 'state.db')];
    const sandbox = await startPetql(['sandbox', '--port', '0']);
    const first = await startPetql([...args, '--pet-api-url', sandbox.address]);
    const pet = 'createPet(input: { name: "Pet", categoryId: 1 }) { pet { id } }';
    const creations = Array.from({ length: 57 }, (_, index) => `a${index}: ${pet}`);
    const { errors } = await query(first, `mutation { ${creations.join(' ')} }`);
    first.kill('SIGKILL');
    await first.exited;
    expect(errors).toBeUndefined();
    const second = await startPetql([...args, '--pet-api-url', sandbox.address]);
    const { data } = await query(second, DAY);
    const { used } = data.rateLimit.windows[1];
    expect(used).toBeGreaterThanOrEqual(57 - 10);
    expect(used).toBeLessThanOrEqual(57);
    // A file is for one process.
    const third = await runPetql([...args, '--sandbox']);
    expect(third).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^petql: --state-file .*another process uses it\n$/),
    });
    for (const petql of [second, sandbox]) {
      petql.kill('SIGKILL');
      await petql.exited;
    }
  });

  test('ends in one clear line when the file cannot be used', async () => {
    const { code, stderr } = await runPetql(['--port', '0', '--state-file', '/proc/none/state.db']);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^petql: --state-file \(STATE_FILE\): cannot use \/proc\/none\/state\.db: .*its own folder is not there.*\n$/,
    );
  });
});
