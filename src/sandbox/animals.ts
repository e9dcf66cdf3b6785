import { DatabaseSync } from 'node:sqlite';
import type { Int64 } from '../int64.ts';
import type { NewPet, Pet, PetStatus } from '../pet.ts';
import { ASSUMED } from './assumptions.ts';
import { seedAnimals } from './seed.ts';
import type { SeedAnimal } from './seed.ts';

/** The production store, and the staging one. */
export type Store = 'production' | 'staging';

/** The animals of both stores. */
export interface Animals {
  list(store: Store, limit: number, status?: PetStatus): Pet[];
  get(store: Store, id: Int64): Pet | undefined;
  /**
   * On disk, where there is a file, before it returns. Undefined when the store is full.
   *
   * @throws Error of node:sqlite when the file cannot be written; nothing is added then.
   */
  add(store: Store, pet: NewPet): Pet | undefined;
  close(): void;
}

/**
 * Opens the store in a file, or in memory, and fills it when it is new.
 *
 * @throws Error of node:sqlite when the file cannot be opened or is no database.
 */
export function openAnimals(file = ':memory:', seeds: readonly SeedAnimal[] = seedAnimals()): Animals {
  const database = new DatabaseSync(file, { readBigInts: true });
  // FULL: an answered creation survives a power cut, too.
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000;');
  database.exec(`
    CREATE TABLE IF NOT EXISTS animals (
      store TEXT NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, category_id INTEGER NOT NULL, status TEXT,
      PRIMARY KEY (store, id)
    ) STRICT;
    CREATE INDEX IF NOT EXISTS animals_by_status ON animals (store, status, id);
    CREATE TABLE IF NOT EXISTS next_ids (store TEXT PRIMARY KEY, next_id INTEGER NOT NULL) STRICT;
  `);
  const insert = database.prepare('INSERT INTO animals VALUES (?, ?, ?, ?, ?)');
  // No animal ever goes, so the ids that were given tell how many there are.
  const takeId = database.prepare(
    `UPDATE next_ids SET next_id = next_id + 1 WHERE store = ? AND next_id <= ${ASSUMED.animals} RETURNING next_id - 1 AS id`,
  );
  const all = database.prepare('SELECT * FROM animals WHERE store = ? ORDER BY id LIMIT ?');
  const byStatus = database.prepare('SELECT * FROM animals WHERE store = ? AND status = ? ORDER BY id LIMIT ?');
  const byId = database.prepare('SELECT * FROM animals WHERE store = ? AND id = ?');

  transaction(() => {
    if (database.prepare('SELECT 1 FROM next_ids').get()) return;
    for (const store of ['production', 'staging'] satisfies Store[]) {
      database.prepare('INSERT INTO next_ids VALUES (?, 1)').run(store);
      for (const { id, ...pet } of seeds) addRow(store, pet, id);
    }
  });

  return {
    list: (store, limit, status) =>
      (status === undefined ? all.all(store, limit) : byStatus.all(store, status, limit)).map(petOf),
    get: (store, id) => {
      const row = byId.get(store, BigInt(id));
      return row && petOf(row);
    },
    add: (store, pet) => transaction(() => addRow(store, pet)),
    close: () => database.close(),
  };

  function addRow(store: Store, { name, categoryId, status }: NewPet, givenId?: Int64): Pet | undefined {
    const id = givenId ?? nextId(store);
    if (id === undefined) return undefined;
    insert.run(store, BigInt(id), name, BigInt(categoryId), status ?? null);
    return { id, name, categoryId, status };
  }

  function nextId(store: Store): Int64 | undefined {
    const row = takeId.get(store);
    return row && (String(row['id']) as Int64);
  }

  function transaction<T>(run: () => T): T {
    database.exec('BEGIN IMMEDIATE');
    try {
      const result = run();
      database.exec('COMMIT');
      return result;
    } catch (error) {
      // A disk that is full has SQLite roll back by itself.
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }
}

function petOf(row: Record<string, unknown>): Pet {
  return {
    id: String(row['id']) as Int64,
    name: String(row['name']),
    categoryId: String(row['category_id']) as Int64,
    status: (row['status'] ?? undefined) as PetStatus | undefined,
  };
}
