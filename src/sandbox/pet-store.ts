import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { SQLOutputValue } from 'node:sqlite';
import type { Int64 } from '../int64.ts';
import type { Pet, PetStatus } from '../pet.ts';
import { seedPets } from './seed.ts';
import type { SeedPet } from './seed.ts';

export type PetStore = ReturnType<typeof openPetStore>;

/** Not counting seeds with larger ids. With the longest names they take 90 MB. */
export const MAX_PETS = 50_000;

/**
 * Opens the file, or a store in memory, and fills a new one with the seeds. A created pet is on disk when `add` returns it.
 *
 * @throws Error of node:sqlite when the file cannot be opened or is no database. `add` throws one when it cannot write.
 */
export function openPetStore(file?: string, seeds: readonly SeedPet[] = seedPets()) {
  // Resolved: SQLite gives some names, and all that begin with `file:`, another meaning.
  const database = new DatabaseSync(file === undefined ? ':memory:' : resolve(file), { readBigInts: true });
  database.exec(`
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000;
    CREATE TABLE IF NOT EXISTS pet (
      id INTEGER PRIMARY KEY, name TEXT NOT NULL, categoryId INTEGER NOT NULL, status TEXT
    ) STRICT`);
  const list = database.prepare('SELECT * FROM pet WHERE ? IN (status, 0) ORDER BY id LIMIT ?');
  const get = database.prepare('SELECT * FROM pet WHERE id = ?');
  const max = database.prepare('SELECT max(id) AS id FROM pet WHERE id <= ?');
  const insert = database.prepare('INSERT INTO pet VALUES (?, ?, ?, ?) RETURNING *');

  /** Returns undefined when the store is full. */
  function add({ id, name, categoryId, status }: SeedPet): Pet | undefined {
    const newId = BigInt(id ?? 1 + Number(max.get(MAX_PETS)?.['id'] ?? 0));
    if (id === undefined && newId > MAX_PETS) return undefined;
    return insert.all(newId, name, BigInt(categoryId), status ?? null).map(petOf)[0];
  }

  if (list.all(0, 1).length === 0) {
    database.exec('BEGIN IMMEDIATE');
    for (const seed of seeds) add(seed);
    database.exec('COMMIT');
  }
  return {
    list: (limit: number, status?: PetStatus) => list.all(status ?? 0, limit).map(petOf),
    get: (id: Int64) => get.all(BigInt(id)).map(petOf)[0],
    add,
    close: () => database.close(),
  };
}

function petOf({ id, name, categoryId, status }: Record<string, SQLOutputValue>): Pet {
  return { id: String(id), name, categoryId: String(categoryId), status: status ?? undefined } as Pet;
}
