import { int64FromJson, parseInt64 } from '../../pets/int64.ts';
import { parseLosslessJson, bareNumber } from '../../common/lossless-json.ts';
import { PET_STATUSES } from '../../pets/pet.ts';
import type { EachField, NewPet, Pet, PetStatus, WithEachField } from '../../pets/pet.ts';
import { MAX_PETS } from './pet-store.ts';
import type { PetStore } from './pet-store.ts';

/** Counts code points. */
const MAX_PET_NAME_LENGTH = 255;
const DEPRECATED_AT_MS = Date.UTC(2025, 11, 5);
const SUNSET_AT_MS = Date.UTC(2030, 11, 5);

/** A request that passed authentication and limits. */
export interface OperationRequest {
  readonly method: string;
  /** The path below `/v1`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: string;
  readonly nowMs: number;
}

export interface OperationResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Runs one of the three operations of pet-api.md; any other request gets an Error. Where pet-api.md says "not shown", the
 * sandbox assumes the following. Another pet API may differ, and petql relies on none of it.
 *
 * - Order of a list: the pets that were created last, then those of a new store by id, cut at `limit`, so that a list shows what one
 *   creates. No paging, so no Link header.
 * - `status` omitted in a create: the pet is available.
 * - `id` in the body of a create, and fields that the contract does not have: ignored.
 * - `limit` out of bounds or not a number, an unknown `status`, a `petId` that is no int64: 400.
 * - Names: 1 to 255 characters (code points), not all blank, no control characters, no lone surrogates. Category ids: any
 *   int64; beyond the exact integers of a double, written in digits alone.
 * - A full store rejects a create with 409.
 * - Values of `code`: `bad_request`, `unauthorized`, `not_found`, `method_not_allowed`, `gone`, `store_full`,
 *   `rate_limited`, `key_banned`, `internal_error`. A 429 has the Error body.
 * - Windows are fixed: a minute starts with each minute of the Unix clock, a day with each day in UTC.
 * - The rate-limit headers describe the window with fewer requests left, the minute when both have the same. Of a custom plan,
 *   every tenth response describes the day.
 * - A rejected request counts in no window. Every other one with a valid key does, whatever its status.
 * - A key is banned for five minutes at its tenth rejection inside one window.
 * - Without a valid key there is no plan: limit and remaining are 0, and the reset is now.
 * - `GET /pets/{petId}` was deprecated on 5 December 2025 and is 410 from 5 December 2030 (UTC) on.
 */
export function runOperation(pets: PetStore, request: OperationRequest): OperationResponse {
  const { method, path } = request;
  if (path === '/pets') {
    if (method === 'GET') return listPets(pets, request);
    return method === 'POST' ? createPet(pets, request) : methodNotAllowed('GET, POST');
  }

  const petId = /^\/pets\/([^/]+)$/.exec(path)?.[1];
  if (petId === undefined) return errorResponse(404, 'not_found', 'There is nothing at this path.');
  return method === 'GET' ? getPet(pets, petId, request) : methodNotAllowed('GET');
}

/** A response with the Error body. */
export function errorResponse(
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): OperationResponse {
  return { status, headers, body: JSON.stringify({ code, message, status }) };
}

function listPets(pets: PetStore, { query }: OperationRequest): OperationResponse {
  const limit = query.get('limit') ?? '20';
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > 100) {
    return badRequest('limit: expected a whole number from 1 to 100.');
  }

  const status = query.get('status') ?? undefined;
  if (status !== undefined && !isPetStatus(status)) return badRequest(STATUS_EXPECTED);
  return { status: 200, body: JSON.stringify(pets.list(Number(limit), status).map(wirePet)) };
}

function createPet(pets: PetStore, { body }: OperationRequest): OperationResponse {
  const pet = readNewPet(body);
  if (typeof pet === 'string') return badRequest(pet);

  const added = pets.add(pet);
  if (!added) return errorResponse(409, 'store_full', `The store holds ${MAX_PETS} pets and takes no more.`);
  return { status: 201, body: JSON.stringify(wirePet(added)) };
}

function getPet(pets: PetStore, petId: string, { nowMs }: OperationRequest): OperationResponse {
  if (nowMs >= SUNSET_AT_MS) {
    return errorResponse(410, 'gone', 'This operation was removed; use GET /pets with the status filter.');
  }

  const id = parseInt64(petId);
  if (id === undefined) return errorResponse(400, 'bad_request', 'petId: expected an int64.', DEPRECATION);
  const pet = pets.get(id);
  if (!pet) return errorResponse(404, 'not_found', 'The requested resource could not be found.', DEPRECATION);
  return { status: 200, headers: DEPRECATION, body: JSON.stringify(wirePet(pet)) };
}

const STATUS_EXPECTED = `status: expected one of ${PET_STATUSES.join(', ')}.`;

/** Follows RFC 9745 and RFC 8594. */
const DEPRECATION = {
  deprecation: `@${DEPRECATED_AT_MS / 1000}`,
  sunset: new Date(SUNSET_AT_MS).toUTCString(),
};

/** Returns the pet to add, or a text that says why the body has none. */
function readNewPet(body: string): WithEachField<NewPet> | string {
  let json: unknown;
  try {
    json = parseLosslessJson(body);
  } catch {
    return 'The body: expected JSON.';
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return 'The body: expected an object.';

  const { name, categoryId, status } = json as Record<string, unknown>;
  if (typeof name !== 'string' || !isName(name)) {
    return `name: expected 1 to ${MAX_PET_NAME_LENGTH} characters, not all blank, without control characters and lone surrogates.`;
  }
  const category = int64FromJson(categoryId);
  if (category === undefined) return 'categoryId: expected an int64.';
  if (status !== undefined && !isPetStatus(status)) return STATUS_EXPECTED;
  return { name, categoryId: category, status: status ?? 'available' };
}

function isName(name: string): boolean {
  // The store holds UTF-8, which has no lone surrogates.
  if (name.trim() === '' || !name.isWellFormed() || /\p{Cc}/u.test(name)) return false;
  return [...name].length <= MAX_PET_NAME_LENGTH;
}

function isPetStatus(value: unknown): value is PetStatus {
  return (PET_STATUSES as readonly unknown[]).includes(value);
}

function wirePet({ id, name, categoryId, status }: Pet): EachField<unknown> {
  return { id: bareNumber(id), name, categoryId: bareNumber(categoryId), status };
}

function badRequest(message: string): OperationResponse {
  return errorResponse(400, 'bad_request', message);
}

function methodNotAllowed(allow: string): OperationResponse {
  return errorResponse(405, 'method_not_allowed', `Only ${allow} can be used here.`, { allow });
}
