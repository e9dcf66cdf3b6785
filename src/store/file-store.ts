import { accessSync, constants, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { SettingError } from '../common/errors.ts';
import type { Log } from '../common/log.ts';
import { StoreUnavailableError } from './store.ts';
import type { Store } from './store.ts';
import { SWEEP_EVERY_MS } from '../common/times.ts';

/** Raised when an older petql would misread the file. */
const FORMAT = 2;
const MAX_SWEPT = 1_000;

/**
 * Keeps documents in an SQLite file, for one process. An update is in the file when it returns, and survives kill -9. A power
 * cut may lose the last moments.
 *
 * @param path a file, even with a name that has another meaning in SQLite, such as `:memory:`.
 * @param nowMs milliseconds since the Unix epoch, never going back.
 * @param log gets one line when writing fails, and one when it works again.
 * @throws Error with the reason and what to do, where the file cannot be used. The file stays unchanged.
 */
export function openFileStore(path: string, nowMs: () => number, log: Log): Store {
  const file = resolve(path);
  let database: DatabaseSync | undefined;
  try {
    // SQLite would open a file that it may only read, and fail later.
    if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
    database = new (process.getBuiltinModule('node:sqlite').DatabaseSync)(file);
    prepareFile(database);
    return storeIn(database, nowMs, log);
  } catch (error) {
    database?.close();
    throw new SettingError('stateFile', (name) => `${name}: ${fileProblem(path, error)}`, { cause: error });
  }
}

/** Returns why SQLite could not open a file, and what the file must be. */
export function fileProblem(path: string, error: unknown): string {
  return `cannot use ${path}: ${(error as Error).message}. ${FILE_ADVICE}`;
}

const FILE_ADVICE =
  'Name a new file, or one of petql: in a folder that it may write, on a disk with room, used by no other process or thread.';

function prepareFile(database: DatabaseSync): void {
  database.exec('PRAGMA locking_mode = EXCLUSIVE');
  const format = Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
  if (format > FORMAT) throw new Error(`it has the newer format ${format}; this petql reads format ${FORMAT}`);

  // NORMAL: no fsync per write. The transaction takes the lock.
  database.exec(`
    PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS documents (name TEXT PRIMARY KEY, text TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS documents_by_expiry ON documents (expires_at);
    COMMIT;
  `);

  // Finds damage now, in one clear line, rather than in single requests later.
  const [found] = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {});
  if (found !== 'ok') throw new Error(`it is damaged (${String(found).replaceAll('\n', ' ')})`);
  if (format === FORMAT) return;

  // These are the tables of format 1.
  database.exec(`DROP TABLE IF EXISTS state; DROP TABLE IF EXISTS records; PRAGMA user_version = ${FORMAT}`);
}

function storeIn(database: DatabaseSync, nowMs: () => number, log: Log): Store {
  const select = database.prepare('SELECT text FROM documents WHERE name = ? AND expires_at > ?');
  const upsert = database.prepare(`
    INSERT INTO documents VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET text = excluded.text, expires_at = excluded.expires_at
  `);
  const remove = database.prepare('DELETE FROM documents WHERE name = ?');
  const sweep = database.prepare(
    'DELETE FROM documents WHERE rowid IN (SELECT rowid FROM documents WHERE expires_at <= ? LIMIT ?)',
  );
  let sweepAtMs = nowMs();
  let isWritable = true;

  return {
    async update(name, change) {
      const now = nowMs();
      const found = attempt(() => select.get(name, now)?.['text'] as string | undefined);
      const { text, ttlMs, result } = change(found, now);
      if (text === undefined && found !== undefined) write(() => remove.run(name), now);
      else if (text !== undefined && text !== found) write(() => upsert.run(name, text, now + ttlMs), now);
      return result;
    },

    nowMs,

    async close() {
      if (database.isOpen) database.close();
    },
  };

  function write(run: () => unknown, now: number): void {
    try {
      attempt(() => {
        if (now >= sweepAtMs) {
          sweep.run(now, MAX_SWEPT);
          sweepAtMs = now + SWEEP_EVERY_MS;
        }
        run();
      });

      if (!isWritable) log.info({}, 'writing the state file works again');
      isWritable = true;
    } catch (error) {
      const reason = (error as Error).message;
      if (isWritable) log.error({ reason }, 'could not write the state file; a restart will forget');
      isWritable = false;
      throw error;
    }
  }
}

/** @throws StoreUnavailableError */
function attempt<Result>(step: () => Result): Result {
  try {
    return step();
  } catch (error) {
    throw new StoreUnavailableError((error as Error).message, { cause: error });
  }
}
