import { bareNumber, parseLosslessJson } from '../../../src/lossless-json.ts';

/** The pets that one API key sees, strictly by pet-api.md, with what was true when. */
export interface PetStore {
  readonly serve: (request: StoreRequest) => StoreResponse;
  /** A change by others: a pet is adopted, or added, or its status changes. */
  readonly change: (chance: () => number) => void;
  /** Every id that ever was, in order. */
  readonly ids: readonly string[];
  /** Ids of pets that no list shows now. */
  readonly hiddenIds: () => string[];
  readonly has: (id: string) => boolean;
  /** The names of what was added by a POST. */
  readonly addedNames: () => Iterable<string>;
  /** What was added by a POST of this name. */
  readonly addedAs: (name: string) => readonly Added[];
  /** Whether a list began with exactly these pets at a moment of the span; each as `textOf` has it. */
  readonly listedAt: (status: Status | undefined, limit: number, pets: readonly string[], span: Span) => boolean;
  /** Whether the pet was so at a moment of the span: as `textOf` has it, or null where there was none. */
  readonly wasAt: (id: string, pet: string | null, span: Span) => boolean;
}

export interface StoreRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

export interface StoreResponse {
  readonly status: number;
  /** JSON. */
  readonly body: string;
}

/** The statuses of pet-api.md, on their own: petql's are compared with them. */
export const STATUSES = ['available', 'pending', 'sold'] as const;
export type Status = (typeof STATUSES)[number];

/** By the clock of the store. */
export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface Added {
  readonly id: string;
  readonly atMs: number;
}

interface StoredPet {
  readonly id: string;
  readonly name: string;
  readonly categoryId: string;
  status: Status | undefined;
  readonly addedAtMs: number;
}

/** What was so from this moment until the next one's. */
interface Version<Value> {
  readonly fromMs: number;
  readonly value: Value;
}

/** A pet to begin with. Without an id it gets the next one. */
export interface SeedPet {
  readonly id?: string | undefined;
  readonly name: string;
  readonly categoryId: string;
  readonly status?: Status | undefined;
}

export interface PetStoreOptions {
  /** The pets that it starts with. Default: `size` pets of a category. */
  readonly pets?: readonly SeedPet[];
  /** How many pets it starts with, and about how many it keeps. Default: those given. */
  readonly size?: number;
  /** Default 1. */
  readonly firstId?: bigint;
  /** Of the first pets, in turn. Default: each status. */
  readonly statuses?: readonly (Status | undefined)[];
  readonly now?: () => number;
}

const MAX_LISTED = 100;
const DEFAULT_LIMIT = 20;
/** Longer than any data that petql may serve is old. */
const REMEMBERED_MS = 20 * 60_000;
/** A pet that was added stays for so long, so that its client can look for it. */
const STAYS_MS = 60_000;

/** Pets with the ids 1 and up and each status in turn. */
export function petSeeds(count: number, statuses: readonly Status[] = STATUSES): SeedPet[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `Pet ${index + 1}`,
    categoryId: '1',
    status: statuses[index % statuses.length],
  }));
}

export function textOf({ id, name, categoryId, status }: Omit<StoredPet, 'addedAtMs'>): string {
  return `${id} ${name} ${categoryId} ${status ?? ''}`;
}

export function refusal(status: number, code = 'refused', message = 'Refused.'): StoreResponse {
  return { status, body: JSON.stringify({ code, message, status }) };
}

export function createPetStore(options: PetStoreOptions): PetStore {
  const { firstId = 1n, statuses = STATUSES, now = () => performance.now() } = options;
  const { size = options.pets?.length ?? 0 } = options;
  const pets = new Map<string, StoredPet>();
  const ids: string[] = [];
  const added = new Map<string, Added[]>();
  const lists = new Map<Status | undefined, Version<readonly string[]>[]>();
  const versions = new Map<string, Version<string | null>[]>();
  let nextId = firstId;
  for (let index = 0; index < size; index += 1) {
    store(
      options.pets?.[index] ?? { name: `Pet ${nextId}`, categoryId: '3', status: statuses[index % statuses.length] },
    );
  }
  noteLists();

  return {
    ids,
    has: (id) => versions.has(id),
    hiddenIds() {
      const shown = new Set([undefined, ...STATUSES].flatMap(listOf));
      return [...pets.values()].filter((pet) => !shown.has(pet)).map(({ id }) => id);
    },
    serve({ method, path, body }) {
      const route = /^\/pets(?:\/(?<id>-?\d+))?(?:\?(?<query>.*))?$/.exec(path);
      if (!route) return refusal(404, 'not_found', 'There is nothing at this path.');
      const { id, query } = route.groups ?? {};
      if (method === 'POST') return create(body);
      return id === undefined ? list(new URLSearchParams(query)) : get(id);
    },
    change(chance) {
      const oldest = pets.values().next().value;
      const isCrowded = pets.size > size && oldest && now() - oldest.addedAtMs > STAYS_MS;
      const pick = [...pets.values()][Math.floor(chance() * pets.size)];
      if (isCrowded || (chance() < 0.1 && pets.size > size / 2 && oldest)) {
        pets.delete(oldest.id);
        noteVersion(oldest.id, null);
      } else if (chance() < 0.15 && pets.size < size) {
        store({ name: `Other ${nextId}`, categoryId: '4', status: 'sold' });
      } else if (pick) {
        pick.status = [...STATUSES, undefined][Math.floor(chance() * (STATUSES.length + 1))];
        noteVersion(pick.id, textOf(pick));
      }
      noteLists();
    },
    addedNames: () => added.keys(),
    addedAs: (name) => added.get(name) ?? [],
    listedAt: (status, limit, texts, span) =>
      within(lists.get(status) ?? [], span).some(
        ({ value }) =>
          texts.length === Math.min(limit, value.length) && texts.every((text, index) => text === value[index]),
      ),
    wasAt: (id, text, span) =>
      within([{ fromMs: -Infinity, value: null }, ...(versions.get(id) ?? [])], span).some(
        ({ value }) => value === text,
      ),
  };

  function list(search: URLSearchParams): StoreResponse {
    const status = search.get('status') ?? undefined;
    const limit = Number(search.get('limit') ?? DEFAULT_LIMIT);
    if (!isStatus(status)) return refusal(400, 'bad_request', 'status: expected one of the three.');
    if (!(limit >= 1 && limit <= MAX_LISTED)) return refusal(400, 'bad_request', 'limit: expected 1 to 100.');
    return { status: 200, body: `[${listOf(status).slice(0, limit).map(wire).join(',')}]` };
  }

  function get(id: string): StoreResponse {
    const pet = pets.get(id);
    return pet ? { status: 200, body: wire(pet) } : refusal(404, 'not_found', 'There is no such pet.');
  }

  function create(body: string): StoreResponse {
    const { name, categoryId, status } = parseLosslessJson(body) as Record<string, unknown>;
    if (typeof name !== 'string' || name.trim() === '') return refusal(400, 'bad_request', 'name: expected a text.');
    if (!isStatus(status)) return refusal(400, 'bad_request', 'status: expected one of the three.');
    const isShown = [undefined, status].some((one) => listOf(one).length < MAX_LISTED);
    const pet = store({ name, categoryId: String(categoryId), status });
    if (isShown) noteLists();
    const sameName = added.get(name) ?? [];
    added.set(name, sameName);
    sameName.push({ id: pet.id, atMs: now() });
    return { status: 201, body: wire(pet) };
  }

  function store({ id, name, categoryId, status }: SeedPet): StoredPet {
    const stored = { id: id ?? String(nextId), name, categoryId, status, addedAtMs: now() };
    if (id === undefined) nextId += 1n;
    pets.set(stored.id, stored);
    ids.push(stored.id);
    noteVersion(stored.id, textOf(stored));
    return stored;
  }

  function noteVersion(id: string, value: string | null): void {
    const known = versions.get(id);
    if (known) known.push({ fromMs: now(), value });
    else versions.set(id, [{ fromMs: now(), value }]);
  }

  /** Writes down the lists that have changed, and forgets what is old. */
  function noteLists(): void {
    for (const status of [undefined, ...STATUSES]) {
      const value = listOf(status).map(textOf);
      const known = lists.get(status) ?? [];
      lists.set(status, known);
      if (known.at(-1)?.value.join('\n') !== value.join('\n')) known.push({ fromMs: now(), value });
      while ((known[1]?.fromMs ?? Infinity) < now() - REMEMBERED_MS) known.shift();
    }
  }

  function listOf(status: Status | undefined): StoredPet[] {
    const found = [];
    for (const pet of pets.values()) {
      if (found.length === MAX_LISTED) break;
      if (status === undefined || pet.status === status) found.push(pet);
    }
    return found;
  }
}

/** Versions that held at some moment of the span. */
function within<Value>(versions: readonly Version<Value>[], { fromMs, untilMs }: Span): Version<Value>[] {
  return versions.filter(
    (version, index) => version.fromMs <= untilMs && (versions[index + 1]?.fromMs ?? Infinity) >= fromMs,
  );
}

function isStatus(value: unknown): value is Status | undefined {
  return value === undefined || (STATUSES as readonly unknown[]).includes(value);
}

function wire({ id, name, categoryId, status }: StoredPet): string {
  return JSON.stringify({ id: bareNumber(id), name, categoryId: bareNumber(categoryId), status });
}
