import { accessSync, constants, existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { createKeptRecords } from './kept-records.ts';
import type { Records } from './records.ts';

/** Small things by name that outlive the process, kill -9 included. */
export interface StateFile {
  get(name: string): string | undefined;
  /** Written when it returns, as far as the operating system goes. */
  setAll(entries: Iterable<readonly [name: string, value: string]>): void;
  /** Forgets what was not set for so long, in milliseconds; where it cannot be written, nothing. */
  forget(olderThanMs: number): void;
  /** Whether the process before did not close it, so that the last it would have written may be missing. Default: false. */
  readonly unclean?: boolean;
  /** Closes it; what is closed already stays so. */
  close(): void;
}

export interface OpenStateFile extends StateFile {
  readonly records: Records;
  /** The secret of this file, which is never forgotten; made and written where there is none yet. */
  keySecret(make: () => string): string;
}

/** The name of this file's secret. What is kept under it, or a name that begins with it, is never forgotten. */
export const KEY_SECRET = 'key-secret';
/** Is there while a process has the file open, and after one that did not close it. */
const OPEN = 'open';
/** What an unclean end leaves in doubt is out of every minute by then, however that is counted. */
const IN_DOUBT_MS = 120_000;
/**
 * What is added to what is kept, and can be missing or left unread, is no new format. A new one is what an older petql would
 * misread; those before the first had none, and are read the same.
 */
const FORMAT = 1;

/**
 * Opens the file, or makes it, for this process alone: two that spend from one memory would spend twice. `:memory:` is
 * none. What is written to a file that was there, so that the next start knows how this one ended, is left out on a full disk:
 * it opens there too.
 *
 * @param now milliseconds since the epoch.
 * @throws Error when the file cannot be opened or written, is no database, is damaged, is in use, or is of a newer petql; it is
 *   not held open.
 */
export function openStateFile(path: string, now: () => number): OpenStateFile {
  // SQLite would read a file that it may not write, and tell of something else later.
  if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
  const database = new DatabaseSync(path);
  try {
    makeReady(database);
    return stateFileIn(database, now);
  } catch (error) {
    database.close();
    throw error;
  }
}

function makeReady(database: DatabaseSync): void {
  database.exec('PRAGMA locking_mode = EXCLUSIVE');
  const format = formatOf(database);
  if (format > FORMAT) throw new Error(`it is of a newer petql (format ${format}, and this one knows ${FORMAT})`);
  // NORMAL: what was written outlives the process; a power cut may take the last moments.
  database.exec(`
    PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL, set_at INTEGER NOT NULL) STRICT;
    COMMIT;
  `);
  // Found now, damage is one clear line; found later, it would be the errors of those whose state it is.
  const [found] = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {});
  if (found !== 'ok') throw new Error(`it is damaged (${String(found).replaceAll('\n', ' ')})`);
  // Where there is no room for it, the next start tries again, and reads all the same.
  if (format !== FORMAT) orNot(() => database.exec(`PRAGMA user_version = ${FORMAT}`));
}

function formatOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
}

function stateFileIn(database: DatabaseSync, now: () => number): OpenStateFile {
  const select = database.prepare('SELECT value FROM state WHERE name = ?');
  const upsert = database.prepare('INSERT OR REPLACE INTO state VALUES (?, ?, ?)');
  const remove = database.prepare(
    `DELETE FROM state WHERE set_at < ? AND name NOT LIKE '${KEY_SECRET}%' AND name <> '${OPEN}'`,
  );
  const removeOpen = database.prepare(`DELETE FROM state WHERE name = '${OPEN}'`);
  const get = (name: string) => select.get(name)?.['value'] as string | undefined;
  const unclean = get(OPEN) !== undefined;
  const openedAtMs = now();
  orNot(() => upsert.run(OPEN, '', openedAtMs));
  return {
    get,
    unclean,
    setAll(entries) {
      database.exec('BEGIN');
      try {
        for (const [name, value] of entries) upsert.run(name, value, now());
        database.exec('COMMIT');
      } catch (error) {
        // A disk that is full has SQLite roll back by itself.
        if (database.isTransaction) database.exec('ROLLBACK');
        throw error;
      }
    },
    forget(olderThanMs) {
      orNot(() => remove.run(now() - olderThanMs));
    },
    keySecret(make) {
      const known = get(KEY_SECRET);
      if (known !== undefined) return known;
      const made = make();
      upsert.run(KEY_SECRET, made, now());
      return made;
    },
    close() {
      if (!database.isOpen) return;
      orNot(() => {
        // Whoever ends at once, its port in use for one, has found out nothing of what is in doubt.
        if (!unclean || now() - openedAtMs >= IN_DOUBT_MS) removeOpen.run();
      });
      database.close();
    },
    records: createKeptRecords({ database, now }),
  };
}

/** Where there is no room to write: what is kept for longer, or not noted, keeps nobody from going on. */
function orNot(write: () => unknown): void {
  try {
    write();
  } catch {
    // As said.
  }
}
