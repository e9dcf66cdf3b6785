import { DatabaseSync } from 'node:sqlite';
import { createKeptRecords } from './kept-records.ts';
import type { Records } from './records.ts';

/** Small things by name that outlive the process, kill -9 included. */
export interface StateFile {
  get(name: string): string | undefined;
  /** Written when it returns, as far as the operating system goes. */
  setAll(entries: Iterable<readonly [name: string, value: string]>): void;
  /** Forgets what was not set for so long. */
  forget(olderThanMs: number): void;
  close(): void;
}

export interface OpenStateFile extends StateFile {
  readonly records: Records;
}

/**
 * Opens the file, or makes it, for this process alone: two that spend from one memory would spend twice. `:memory:` is
 * none.
 *
 * @param now milliseconds since the epoch.
 * @throws Error of node:sqlite when the file cannot be opened, is no database, or is in use.
 */
export function openStateFile(path: string, now: () => number): OpenStateFile {
  const database = new DatabaseSync(path);
  // NORMAL: what was written outlives the process; a power cut may take the last moments.
  database.exec(`
    PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL, set_at INTEGER NOT NULL) STRICT;
    COMMIT;
  `);
  const select = database.prepare('SELECT value FROM state WHERE name = ?');
  const upsert = database.prepare('INSERT OR REPLACE INTO state VALUES (?, ?, ?)');
  const remove = database.prepare('DELETE FROM state WHERE set_at < ?');
  return {
    get: (name) => select.get(name)?.['value'] as string | undefined,
    setAll(entries) {
      database.exec('BEGIN');
      try {
        for (const [name, value] of entries) upsert.run(name, value, now());
        database.exec('COMMIT');
      } catch (error) {
        database.exec('ROLLBACK');
        throw error;
      }
    },
    forget: (olderThanMs) => {
      remove.run(now() - olderThanMs);
    },
    close: () => database.close(),
    records: createKeptRecords({ database, now }),
  };
}
