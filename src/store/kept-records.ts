import type { DatabaseSync } from 'node:sqlite';
import { RECORDS_LIVE_MS } from './records.ts';
import type { Begun, Records } from './records.ts';
import { StoreAway } from './store-away.ts';

/** As many as the largest published plan has calls in a day. A record is never dropped for a newer one. */
const MOST_RECORDS = 100_000;

export interface KeptRecordsOptions {
  /** For this process alone. Each change is written when it returns, as far as the operating system goes. */
  readonly database: DatabaseSync;
  /** Milliseconds since the epoch that never go back. */
  readonly now: () => number;
  /** Records at most. Default 100,000, which are some 60 MB of memory or 35 MB of a file. */
  readonly most?: number;
}

/** The records of one process: in its state file, or in memory where the database is. */
export function createKeptRecords({ database, now, most = MOST_RECORDS }: KeptRecordsOptions): Records {
  database.exec(`
    CREATE TABLE IF NOT EXISTS records (
      name TEXT PRIMARY KEY, attempt TEXT NOT NULL, input TEXT NOT NULL, outcome TEXT,
      begun_at INTEGER NOT NULL, open_until INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS records_by_age ON records (begun_at);
    -- The process that began these is gone.
    UPDATE records SET open_until = 0 WHERE outcome IS NULL AND open_until > 0;
  `);
  const select = database.prepare('SELECT input, outcome, open_until AS openUntilMs FROM records WHERE name = ?');
  const insert = database.prepare('INSERT INTO records VALUES (?, ?, ?, NULL, ?, ?) ON CONFLICT DO NOTHING');
  const update = database.prepare(`
    INSERT INTO records VALUES (?, ?, ?, ?, ?, 0)
    ON CONFLICT DO UPDATE SET outcome = excluded.outcome WHERE attempt = excluded.attempt
  `);
  const remove = database.prepare('DELETE FROM records WHERE name = ? AND attempt = ?');
  const forget = database.prepare('DELETE FROM records WHERE begun_at <= ?');
  const count = database.prepare('SELECT count(*) AS records, min(begun_at) AS oldest FROM records');
  let kept = counted().records;

  return {
    find: (name, input) =>
      step(() => {
        forgetOld();
        const row = select.get(name);
        if (!row) return undefined;
        const { input: before, outcome, openUntilMs } = row as unknown as Row;
        return {
          isSame: before === input,
          outcome: outcome ?? undefined,
          openForMs: Math.max(0, openUntilMs - now()),
        };
      }),
    begin: (name, { id, input, leaseMs }) =>
      step((): Begun => {
        forgetOld();
        if (select.get(name)) return { kind: 'taken' };
        if (kept >= most) return { kind: 'full', freeInMs: Math.max(0, counted().oldest + RECORDS_LIVE_MS - now()) };
        insert.run(name, id, input, now(), now() + leaseMs);
        kept += 1;
        return { kind: 'begun' };
      }),
    settle: (name, { id, input }, outcome) =>
      step(() => {
        const lost = !select.get(name);
        update.run(name, id, input, outcome, now());
        if (lost) kept += 1;
      }),
    release: (name, { id }) =>
      step(() => {
        kept -= Number(remove.run(name, id).changes);
      }),
    close: () => Promise.resolve(),
  };

  function forgetOld(): void {
    kept -= Number(forget.run(now() - RECORDS_LIVE_MS).changes);
  }

  function counted(): { records: number; oldest: number } {
    const { records, oldest } = count.get() as { records: number; oldest: number | null };
    return { records, oldest: oldest ?? now() };
  }
}

interface Row {
  readonly input: string;
  readonly outcome: string | null;
  readonly openUntilMs: number;
}

function step<T>(run: () => T): Promise<T> {
  try {
    return Promise.resolve(run());
  } catch (error) {
    return Promise.reject(new StoreAway((error as Error).message, { cause: error }));
  }
}
