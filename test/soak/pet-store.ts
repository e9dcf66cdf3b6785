import { bareNumber, parseLosslessJson } from '../../src/lossless-json.ts';
import type { ServiceAnswer, ServiceRequest } from '../prove/strict-upstream.ts';
import type { Span } from './disturbances.ts';
import type { Status } from './operation.ts';

/** The animals that one API key sees, with what was true when. */
export interface PetStore {
  /** Carries a request out, strictly by the contract. */
  serve(request: Pick<ServiceRequest, 'body' | 'method' | 'url'>): ServiceAnswer;
  /** Somebody else than petql's callers: adopts one animal, or brings one, or an animal's status changes. */
  change(chance: () => number): void;
  /** Every id that ever was, youngest last. */
  readonly ids: readonly string[];
  has(id: string): boolean;
  /** What was added by a POST of this name. */
  addedAs(name: string): readonly Added[];
  /** Whether a listing began with exactly these at a moment of the span; each as `textOf` has it. */
  listedAt(status: Status | undefined, limit: number, pets: readonly string[], span: Span): boolean;
  /** Whether the animal was so at a moment of the span: as `textOf` has it, or null where there was none. */
  wasAt(id: string, pet: string | null, span: Span): boolean;
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

export interface PetStoreOptions {
  /** How many animals it starts with, and about how many it keeps. */
  readonly size: number;
  /** The first id. Default: beyond what a double holds exactly. */
  readonly firstId?: bigint;
  readonly now?: () => number;
}

const STATUSES: readonly Status[] = ['available', 'pending', 'sold'];
const LISTED = 100;
/** Longer than any answer that petql may give is old. */
const REMEMBERED_MS = 20 * 60_000;
/** An animal that was added stays for so long, so that who added it can look for it. */
const STAYS_MS = 60_000;

export function textOf({ id, name, categoryId, status }: Omit<StoredPet, 'addedAtMs'>): string {
  return `${id} ${name} ${categoryId} ${status ?? ''}`;
}

export function createPetStore(options: PetStoreOptions): PetStore {
  const { size, firstId = 9_007_199_254_740_993n, now = () => performance.now() } = options;
  const animals = new Map<string, StoredPet>();
  const ids: string[] = [];
  const added = new Map<string, Added[]>();
  const listings = new Map<Status | undefined, Version<readonly string[]>[]>();
  const versions = new Map<string, Version<string | null>[]>();
  let nextId = firstId;
  for (let index = 0; index < size; index += 1) {
    add({ name: `First ${index}`, categoryId: '3', status: STATUSES[index % 4] });
  }
  note();

  return {
    ids,
    has: (id) => versions.has(id),
    serve({ method, url, body }) {
      const path = url.replace('/v1', '');
      if (method === 'POST') return create(body);
      const id = /^\/pets\/(-?\d+)$/.exec(path)?.[1];
      if (id !== undefined) {
        const pet = animals.get(id);
        return pet ? { status: 200, body: JSON.stringify(wire(pet)) } : NOT_FOUND;
      }
      const query = new URLSearchParams(path.split('?')[1]);
      const status = (query.get('status') ?? undefined) as Status | undefined;
      const listed = listingOf(status).slice(0, Number(query.get('limit') ?? 20));
      return { status: 200, body: JSON.stringify(listed.map(wire)) };
    },
    change(chance) {
      const oldest = animals.values().next().value;
      const crowded = animals.size > size && oldest && now() - oldest.addedAtMs > STAYS_MS;
      const pick = [...animals.values()][Math.floor(chance() * animals.size)];
      if (crowded || (chance() < 0.1 && animals.size > size / 2 && oldest)) remove(oldest);
      else if (chance() < 0.15 && animals.size < size)
        add({ name: `Other ${nextId}`, categoryId: '4', status: 'sold' });
      else if (pick) {
        pick.status = STATUSES[Math.floor(chance() * 4)];
        versionsOf(pick.id).push({ fromMs: now(), value: textOf(pick) });
      }
      note();
      forgetOld();
    },
    addedAs: (name) => added.get(name) ?? [],
    listedAt: (status, limit, pets, span) =>
      within(listings.get(status) ?? [], span).some(
        ({ value }) =>
          pets.length === Math.min(limit, value.length) && pets.every((text, index) => text === value[index]),
      ),
    wasAt: (id, pet, span) =>
      within([{ fromMs: -Infinity, value: null }, ...(versions.get(id) ?? [])], span).some(
        ({ value }) => value === pet,
      ),
  };

  function create(body: string): ServiceAnswer {
    const { name, categoryId, status } = parseLosslessJson(body) as Record<string, unknown>;
    if (typeof name !== 'string' || name === '' || (status !== undefined && !STATUSES.includes(status as Status))) {
      return {
        status: 400,
        body: JSON.stringify({ code: 'bad_request', message: 'name: expected one.', status: 400 }),
      };
    }
    const pet = add({ name, categoryId: String(categoryId), status: status as Status | undefined });
    note();
    const log = added.get(name) ?? [];
    log.push({ id: pet.id, atMs: now() });
    added.set(name, log);
    return { status: 201, body: JSON.stringify(wire(pet)) };
  }

  function add(pet: Pick<StoredPet, 'categoryId' | 'name' | 'status'>): StoredPet {
    const stored = { ...pet, id: String(nextId), addedAtMs: now() };
    nextId += 1n;
    animals.set(stored.id, stored);
    ids.push(stored.id);
    versionsOf(stored.id).push({ fromMs: now(), value: textOf(stored) });
    return stored;
  }

  function remove({ id }: StoredPet): void {
    animals.delete(id);
    versionsOf(id).push({ fromMs: now(), value: null });
  }

  function versionsOf(id: string): Version<string | null>[] {
    const known = versions.get(id) ?? [];
    versions.set(id, known);
    return known;
  }

  /** Writes down the listings that have changed. */
  function note(): void {
    for (const status of [undefined, ...STATUSES]) {
      const value = listingOf(status).map(textOf);
      const known = listings.get(status) ?? [];
      listings.set(status, known);
      const last = known.at(-1)?.value;
      if (last?.length !== value.length || value.some((text, index) => text !== last[index])) {
        known.push({ fromMs: now(), value });
      }
    }
  }

  function listingOf(status: Status | undefined): StoredPet[] {
    const found = [];
    for (const pet of animals.values()) {
      if (found.length === LISTED) break;
      if (status === undefined || pet.status === status) found.push(pet);
    }
    return found;
  }

  function forgetOld(): void {
    const untilMs = now() - REMEMBERED_MS;
    for (const known of listings.values()) while ((known[1]?.fromMs ?? Infinity) < untilMs) known.shift();
  }
}

/** Versions that held at some moment of the span. */
function within<Value>(versions: readonly Version<Value>[], { fromMs, untilMs }: Span): Version<Value>[] {
  return versions.filter(
    (version, index) => version.fromMs <= untilMs && (versions[index + 1]?.fromMs ?? Infinity) >= fromMs,
  );
}

function wire({ id, name, categoryId, status }: StoredPet): object {
  return { id: bareNumber(id), name, categoryId: bareNumber(categoryId), status };
}

const NOT_FOUND: ServiceAnswer = {
  status: 404,
  body: JSON.stringify({ code: 'not_found', message: 'There is no such animal.', status: 404 }),
};
