import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { Int64 } from '../../pets/int64.ts';
import { PET_STATUSES } from '../../pets/pet.ts';
import type { EachField, Pet, PetStatus, WithEachField } from '../../pets/pet.ts';
import { seedPets } from './seed.ts';
import type { SandboxPet } from './seed.ts';

/** Bounds the ids that the store gives, not those of seeds. Pets with the longest names take 90 MB. */
export const MAX_PETS = 50_000;

/** The columns of the table. One that is added later may be NULL, since a file of before has no values for it. */
const COLUMNS: EachField<string> = {
  id: 'INTEGER PRIMARY KEY',
  name: 'TEXT NOT NULL',
  categoryId: 'INTEGER NOT NULL',
  status: 'TEXT',
};
const COLUMN_NAMES = Object.keys(COLUMNS);
const PRAGMAS = 'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000';

/** The pets in SQLite: in a file, or in memory. */
export class PetStore {
  readonly #database: DatabaseSync;
  readonly #list: StatementSync;
  readonly #get: StatementSync;
  readonly #max: StatementSync;
  readonly #insert: StatementSync;

  /**
   * Opens the store, and fills a new one with the seeds.
   *
   * @param file default: in memory.
   * @throws Error of node:sqlite when the file cannot be opened or is no database.
   */
  constructor(file?: string, seeds: readonly SandboxPet[] = seedPets()) {
    // Resolved: SQLite gives some names, and all that begin with `file:`, another meaning.
    const path = file === undefined ? ':memory:' : resolve(file);
    this.#database = new DatabaseSync(path, { readBigInts: true });
    this.#createTable();

    this.#get = this.#database.prepare('SELECT * FROM pet WHERE id = ?');
    this.#max = this.#database.prepare('SELECT max(id) AS id FROM pet WHERE id <= ?');
    this.#insert = this.#database.prepare(
      `INSERT INTO pet (${COLUMN_NAMES.join()}) VALUES (${COLUMN_NAMES.map((name) => `:${name}`).join()}) RETURNING *`,
    );

    if (this.#database.prepare('SELECT 1 FROM pet LIMIT 1').get() === undefined) this.#fill(seeds);
    const isCreated = `id > ${this.#lastSeedId()} AND id <= ${MAX_PETS}`;
    this.#list = this.#database.prepare(
      `SELECT * FROM pet WHERE ? IN (status, 0) ORDER BY iif(${isCreated}, -id, id) LIMIT ?`,
    );
  }

  /** Returns the pets that were added last, then the seeds by id. */
  list(limit: number, status?: PetStatus): readonly Pet[] {
    return this.#list.all(status ?? 0, limit).map(petOf);
  }

  get(id: Int64): Pet | undefined {
    return this.#get.all(BigInt(id)).map(petOf)[0];
  }

  /**
   * Adds a pet, which is on disk when this returns; undefined when the store is full. A field that seeds cannot give does not compile.
   *
   * @throws Error of node:sqlite when the pet cannot be written.
   */
  add({ id, name, categoryId = 1, status }: Pick<SandboxPet, keyof Pet>): Pet | undefined {
    const newId = BigInt(id ?? 1 + this.#maxId());
    if (id === undefined && newId > MAX_PETS) return undefined;
    const row: EachField<SQLInputValue> = {
      id: newId,
      name,
      categoryId: BigInt(categoryId),
      status: status ?? null,
    };
    return this.#insert.all(row).map(petOf)[0];
  }

  close(): void {
    this.#database.close();
  }

  #fill(seeds: readonly SandboxPet[]): void {
    this.#database.exec('BEGIN IMMEDIATE');
    for (const seed of seeds) this.add(seed);
    this.#database.exec(`PRAGMA user_version = ${this.#maxId() + 1}; COMMIT`);
  }

  /** The last id that the store itself could have given; 0 where there is none. */
  #maxId(): number {
    return Number(this.#max.get(MAX_PETS)?.['id'] ?? 0);
  }

  /** The file says the id behind it; one of an earlier version says 0. */
  #lastSeedId(): number {
    const nextId = Number(this.#database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
    return nextId === 0 ? MAX_PETS : nextId - 1;
  }

  /** Creates the table, or adds the columns that a file of an earlier version lacks. */
  #createTable(): void {
    const columns = Object.entries(COLUMNS).map((column) => column.join(' '));
    this.#database.exec(`${PRAGMAS}; CREATE TABLE IF NOT EXISTS pet (${columns.join()}) STRICT`);

    const found = this.#database.prepare("SELECT name FROM pragma_table_info('pet')").all();
    for (const [index, name] of COLUMN_NAMES.entries()) {
      if (found.every((column) => column['name'] !== name)) {
        this.#database.exec(`ALTER TABLE pet ADD COLUMN ${columns[index]}`);
      }
    }
  }
}

function petOf(row: Record<string, SQLOutputValue>): WithEachField<Pet> {
  return {
    id: String(row['id']) as Int64,
    name: String(row['name']),
    categoryId: String(row['categoryId']) as Int64,
    status: PET_STATUSES.find((status) => status === row['status']),
  };
}
