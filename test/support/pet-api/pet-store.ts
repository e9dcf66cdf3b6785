import { bareNumber, parseLosslessJson } from '../../../src/common/lossless-json.ts';
import {
  DEFAULT_LISTED,
  ENUM_NAMES,
  FIELDS,
  FIELD_NAMES,
  FILTERS,
  LISTS,
  MAX_LISTED,
  NEW_PET_FIELD_NAMES,
  OPERATIONS,
  isListed,
  listOf,
  routeOf,
  valuesInTurn,
} from './contract.ts';
import type { FieldName, ListName, NewPet, OperationName, Pet, Route, Status } from './contract.ts';

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
  readonly listedAt: (list: ListName, limit: number, pets: readonly string[], span: Span) => boolean;
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
  /** JSON; empty where the operation has none. */
  readonly body: string;
}

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
  pet: Pet;
  readonly addedAtMs: number;
}

/** What was so from this moment until the next one's. */
interface Version<Value> {
  readonly fromMs: number;
  readonly value: Value;
}

/** A pet to begin with. Without an id it gets the next one. */
export interface SeedPet extends NewPet {
  readonly id?: string | undefined;
}

export interface PetStoreOptions {
  /** The pets that it starts with. Default: `size` pets of a category. */
  readonly pets?: readonly SeedPet[];
  /** How many pets it starts with, and about how many it keeps. Default: those given. */
  readonly size?: number;
  /** Default 1. */
  readonly firstId?: bigint;
  /** Of the first pets, in turn. Default: each value of each enum. */
  readonly statuses?: readonly (Status | undefined)[];
  readonly now?: () => number;
}

/** Longer than any data that petql may serve is old. */
const REMEMBERED_MS = 20 * 60_000;
/** A pet that was added stays for so long, so that its client can look for it. */
const STAYS_MS = 60_000;

/** Pets with the ids 1 and up, and each value of each enum in turn, or these statuses. */
export function petSeeds(count: number, statuses?: readonly (Status | undefined)[]): SeedPet[] {
  return Array.from({ length: count }, (_, index) =>
    seedOf(index, { name: `Pet ${index + 1}`, categoryId: '1' }, statuses),
  );
}

function seedOf(index: number, pet: SeedPet, statuses?: readonly (Status | undefined)[]): SeedPet {
  return { ...valuesInTurn(index), ...(statuses && { status: statuses[index % statuses.length] }), ...pet };
}

/** The whole of a pet, to be compared. */
export function textOf(pet: Pet): string {
  // Of another type a value needs a text of its own: an object would be the same text whatever it holds.
  const texts: readonly string[] = FIELD_NAMES.map((name) => pet[name] ?? '');
  return texts.join(' ');
}

export function refusal(status: number, code = 'refused', message = 'Refused.'): StoreResponse {
  return { status, body: JSON.stringify({ code, message, status }) };
}

export function createPetStore(options: PetStoreOptions): PetStore {
  const { firstId = 1n, statuses, now = () => performance.now() } = options;
  const { size = options.pets?.length ?? 0 } = options;
  const pets = new Map<string, StoredPet>();
  const ids: string[] = [];
  const added = new Map<string, Added[]>();
  const lists = new Map<ListName, Version<readonly string[]>[]>();
  const versions = new Map<string, Version<string | null>[]>();
  /** An operation that is missing here does not compile. */
  const SERVES: Readonly<Record<OperationName, (route: Route, body: string) => StoreResponse>> = {
    listPets: serveList,
    createPet: serveCreate,
    getPet: serveGet,
  };
  let nextId = firstId;
  for (let index = 0; index < size; index += 1) {
    store(options.pets?.[index] ?? seedOf(index, { name: `Pet ${nextId}`, categoryId: '3' }, statuses));
  }
  noteLists();

  return {
    ids,
    has: (id) => versions.has(id),
    hiddenIds() {
      const shown = new Set(LISTS.flatMap(shownIn));
      return [...pets.values()].flatMap(({ pet }) => (shown.has(pet) ? [] : pet.id));
    },
    serve({ method, path, body }) {
      const route = routeOf(method, path);
      return route ? SERVES[route.operation](route, body) : refusal(404, 'not_found', 'There is nothing at this path.');
    },
    change(chance) {
      const oldest = pets.values().next().value;
      const isCrowded = pets.size > size && oldest && now() - oldest.addedAtMs > STAYS_MS;
      const pick = [...pets.values()][Math.floor(chance() * pets.size)];
      if (isCrowded || (chance() < 0.1 && pets.size > size / 2 && oldest)) {
        pets.delete(oldest.pet.id);
        noteVersion(oldest.pet.id, null);
      } else if (chance() < 0.15 && pets.size < size) {
        store({ name: `Other ${nextId}`, categoryId: '4', status: 'sold' });
      } else if (pick) {
        const values = ENUM_NAMES.map((name) => [name, [...FIELDS[name].values, undefined]] as const);
        const changed = values.map(([name, each]) => [name, each[Math.floor(chance() * each.length)]]);
        pick.pet = { ...pick.pet, ...Object.fromEntries(changed) };
        noteVersion(pick.pet.id, textOf(pick.pet));
      }
      noteLists();
    },
    addedNames: () => added.keys(),
    addedAs: (name) => added.get(name) ?? [],
    listedAt: (list, limit, texts, span) =>
      within(lists.get(list) ?? [], span).some(
        ({ value }) =>
          texts.length === Math.min(limit, value.length) && texts.every((text, index) => text === value[index]),
      ),
    wasAt: (id, text, span) =>
      within([{ fromMs: -Infinity, value: null }, ...(versions.get(id) ?? [])], span).some(
        ({ value }) => value === text,
      ),
  };

  function serveList({ search }: Route): StoreResponse {
    const filter = Object.fromEntries(FILTERS.map((name) => [name, search.get(name) ?? undefined]));
    const limit = Number(search.get('limit') ?? DEFAULT_LISTED);
    const problem = FILTERS.map((name) => problemOf(name, filter[name])).find((each) => each !== undefined);
    if (problem !== undefined) return refusal(400, 'bad_request', problem);
    if (!(limit >= 1 && limit <= MAX_LISTED)) return refusal(400, 'bad_request', 'limit: expected 1 to 100.');
    const shown = shownIn(listOf(filter)).slice(0, limit);
    return { status: OPERATIONS.listPets.success, body: `[${shown.map(wire).join(',')}]` };
  }

  function serveGet({ id = '' }: Route): StoreResponse {
    const stored = pets.get(id);
    if (!stored) return refusal(404, 'not_found', 'There is no such pet.');
    return { status: OPERATIONS.getPet.success, body: wire(stored.pet) };
  }

  function serveCreate(_route: Route, body: string): StoreResponse {
    const fields = parseLosslessJson(body) as Record<string, unknown>;
    const unknown = Object.keys(fields).find((name) => !(NEW_PET_FIELD_NAMES as readonly string[]).includes(name));
    if (unknown !== undefined) throw new Error(`the double of the pet API has no field ${unknown} of a new pet`);
    const problem = NEW_PET_FIELD_NAMES.map((name) => problemOf(name, fields[name])).find((each) => each !== undefined);
    if (problem !== undefined) return refusal(400, 'bad_request', problem);
    const texts = NEW_PET_FIELD_NAMES.map((name) => [
      name,
      typeof fields[name] === 'string' ? fields[name] : digitsOf(fields[name]),
    ]);
    const pet: NewPet = Object.fromEntries(texts);
    const isShown = LISTS.some((each) => isListed(pet, each) && shownIn(each).length < MAX_LISTED);
    const { id } = store(pet);
    if (isShown) noteLists();
    const sameName = added.get(pet.name) ?? [];
    added.set(pet.name, sameName);
    sameName.push({ id, atMs: now() });
    return { status: OPERATIONS.createPet.success, body: wire({ ...pet, id } as Pet) };
  }

  function store({ id: givenId, ...fields }: SeedPet): Pet {
    const id = givenId ?? String(nextId);
    if (givenId === undefined) nextId += 1n;
    const pet = { ...fields, id } as Pet;
    pets.set(id, { pet, addedAtMs: now() });
    ids.push(id);
    noteVersion(id, textOf(pet));
    return pet;
  }

  function noteVersion(id: string, value: string | null): void {
    const known = versions.get(id);
    if (known) known.push({ fromMs: now(), value });
    else versions.set(id, [{ fromMs: now(), value }]);
  }

  /** Writes down the lists that have changed, and forgets what is old. */
  function noteLists(): void {
    for (const list of LISTS) {
      const value = shownIn(list).map(textOf);
      const known = lists.get(list) ?? [];
      lists.set(list, known);
      if (known.at(-1)?.value.join('\n') !== value.join('\n')) known.push({ fromMs: now(), value });
      while ((known[1]?.fromMs ?? Infinity) < now() - REMEMBERED_MS) known.shift();
    }
  }

  function shownIn(list: ListName): Pet[] {
    const found = [];
    for (const { pet } of pets.values()) {
      if (found.length === MAX_LISTED) break;
      if (isListed(pet, list)) found.push(pet);
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

/** Returns what is wrong with the value of a field or a filter. */
function problemOf(name: FieldName, value: unknown): string | undefined {
  const field = FIELDS[name];
  switch (field.kind) {
    case 'text':
      return typeof value === 'string' && value.trim() !== '' ? undefined : `${name}: expected a text.`;
    case 'int64':
      return Number.isInteger(value) || typeof value === 'bigint' ? undefined : `${name}: expected an int64.`;
    case 'enum': {
      const isKnown = value === undefined || (field.values as readonly unknown[]).includes(value);
      return isKnown ? undefined : `${name}: expected one of ${field.values.join(', ')}.`;
    }
  }
}

function digitsOf(value: unknown): string | undefined {
  return typeof value === 'bigint' || typeof value === 'number' ? String(value) : undefined;
}

/** What was encoded before: a pet does not change, it is replaced. */
const TEXTS = new WeakMap<Pet, string>();

function wire(pet: Pet): string {
  const text = TEXTS.get(pet) ?? encode(pet);
  TEXTS.set(pet, text);
  return text;
}

function encode(pet: Pet): string {
  const encoded = FIELD_NAMES.map((name) => {
    const value = pet[name];
    return [name, value !== undefined && FIELDS[name].kind === 'int64' ? bareNumber(value) : value];
  });
  return JSON.stringify(Object.fromEntries(encoded));
}
