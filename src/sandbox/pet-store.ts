import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { SQLOutputValue } from 'node:sqlite';
import type { Int64 } from '../int64.ts';
import type { Pet, PetStatus } from '../pet.ts';
import { seedPets } from './seed.ts';
import type { SeedPet } from './seed.ts';

export type Environment = 'production' | 'staging';
export type PetStore = ReturnType<typeof openPetStore>;

/** In each environment, not counting seeds with larger ids. With the longest names, both then take 180 MB. */
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
    CREATE TABLE IF NOT EXISTS pets (
      store TEXT NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, categoryId INTEGER NOT NULL, status TEXT,
      PRIMARY KEY (store, id)
    ) STRICT`);
  const list = database.prepare('SELECT * FROM pets WHERE store = ? AND ? IN (status, 0) ORDER BY id LIMIT ?');
  const get = database.prepare('SELECT * FROM pets WHERE store = ? AND id = ?');
  const max = database.prepare('SELECT max(id) AS id FROM pets WHERE store = ? AND id <= ?');
  const insert = database.prepare('INSERT INTO pets VALUES (?, ?, ?, ?, ?) RETURNING *');

  /** Returns undefined when the store is full. */
  function add(store: Environment, { id, name, categoryId, status }: SeedPet): Pet | undefined {
    const newId = BigInt(id ?? 1 + Number(max.get(store, MAX_PETS)?.['id'] ?? 0));
    if (id === undefined && newId > MAX_PETS) return undefined;
    return insert.all(store, newId, name, BigInt(categoryId), status ?? null).map(petOf)[0];
  }

  if (list.all('production', 0, 1).length === 0) {
    database.exec('BEGIN IMMEDIATE');
    for (const store of ['production', 'staging'] as const) for (const seed of seeds) add(store, seed);
    database.exec('COMMIT');
  }
  return {
    list: (store: Environment, limit: number, status?: PetStatus) => list.all(store, status ?? 0, limit).map(petOf),
    get: (store: Environment, id: Int64) => get.all(store, BigInt(id)).map(petOf)[0],
    add,
    close: () => database.close(),
  };
}

function petOf({ id, name, categoryId, status }: Record<string, SQLOutputValue>): Pet {
  return { id: String(id), name, categoryId: String(categoryId), status: status ?? undefined } as Pet;
}
