import { parseInt64 } from '../int64.ts';
import { parseLosslessJson, bareNumber } from '../lossless-json.ts';
import { PET_STATUSES } from '../pet.ts';
import type { NewPet, Pet, PetStatus } from '../pet.ts';
import type { Animals, Store } from './animals.ts';
import { ASSUMED } from './assumptions.ts';

/** A request that has passed authentication and limits. */
export interface OperationRequest {
  readonly store: Store;
  readonly method: string;
  /** Below `/v1`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: string;
  readonly nowMs: number;
}

export interface OperationAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The three operations of pet-api.md; whatever else is asked is an Error. */
export function runOperation(animals: Animals, request: OperationRequest): OperationAnswer {
  const { method, path } = request;
  if (path === '/pets') {
    if (method === 'GET') return listPets(animals, request);
    if (method === 'POST') return createPet(animals, request);
    return methodNotAllowed('GET, POST');
  }
  const petId = /^\/pets\/([^/]+)$/.exec(path)?.[1];
  if (petId === undefined) return errorAnswer(404, 'not_found', 'There is nothing at this path.');
  return method === 'GET' ? getPet(animals, petId, request) : methodNotAllowed('GET');
}

/** An answer with the Error body. */
export function errorAnswer(
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): OperationAnswer {
  return { status, headers, body: JSON.stringify({ code, message, status }) };
}

function listPets(animals: Animals, { store, query }: OperationRequest): OperationAnswer {
  const limit = query.get('limit') ?? '20';
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > 100) {
    return badRequest('limit: expected a whole number from 1 to 100.');
  }
  const status = query.get('status') ?? undefined;
  if (status !== undefined && !isPetStatus(status)) return badRequest(statusExpected);
  return { status: 200, body: JSON.stringify(animals.list(store, Number(limit), status).map(wirePet)) };
}

function createPet(animals: Animals, { store, body }: OperationRequest): OperationAnswer {
  const pet = readNewPet(body);
  if (typeof pet === 'string') return badRequest(pet);
  const added = animals.add(store, pet);
  return added
    ? { status: 201, body: JSON.stringify(wirePet(added)) }
    : errorAnswer(409, 'store_full', `The store holds ${ASSUMED.animals} animals and takes no more.`);
}

function getPet(animals: Animals, petId: string, { store, nowMs }: OperationRequest): OperationAnswer {
  if (nowMs >= ASSUMED.sunsetAtMs) {
    return errorAnswer(410, 'gone', 'This operation was removed; use GET /pets with the status filter.');
  }
  return { ...findPet(animals, petId, store), headers: deprecation };
}

function findPet(animals: Animals, petId: string, store: Store): OperationAnswer {
  const id = parseInt64(petId);
  if (id === undefined) return badRequest('petId: expected an int64.');
  const pet = animals.get(store, id);
  if (!pet) return errorAnswer(404, 'not_found', 'The requested resource could not be found.');
  return { status: 200, body: JSON.stringify(wirePet(pet)) };
}

const statusExpected = `status: expected one of ${PET_STATUSES.join(', ')}.`;

/** RFC 9745 and RFC 8594. */
const deprecation = {
  deprecation: `@${ASSUMED.deprecatedAtMs / 1000}`,
  sunset: new Date(ASSUMED.sunsetAtMs).toUTCString(),
};

/** The animal to add, or what is wrong with the body. */
function readNewPet(body: string): NewPet | string {
  let json: unknown;
  try {
    json = parseLosslessJson(body);
  } catch {
    return 'The body: expected JSON.';
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return 'The body: expected an object.';
  const { name, categoryId, status } = json as Record<string, unknown>;
  if (typeof name !== 'string' || !isName(name)) {
    return `name: expected 1 to ${ASSUMED.nameCodePoints} characters, not all blank and none of them a control character or a lone surrogate.`;
  }
  // An integer beyond the safe ones is a bigint; a number there has a fraction or an exponent, and may be rounded.
  const category =
    typeof categoryId === 'bigint' || Number.isSafeInteger(categoryId) ? parseInt64(String(categoryId)) : undefined;
  if (category === undefined) return 'categoryId: expected an int64.';
  if (status !== undefined && !isPetStatus(status)) return statusExpected;
  return { name, categoryId: category, status };
}

function isName(name: string): boolean {
  // A file holds UTF-8, which has nothing for half a pair of surrogates.
  if (name.trim() === '' || !name.isWellFormed()) return false;
  // Two units hold every code point: a quarter of a megabyte is not taken apart to be counted.
  if (name.length > 2 * ASSUMED.nameCodePoints) return false;
  return [...name].length <= ASSUMED.nameCodePoints && !/\p{Cc}/u.test(name);
}

function isPetStatus(value: unknown): value is PetStatus {
  return (PET_STATUSES as readonly unknown[]).includes(value);
}

function wirePet({ id, name, categoryId, status }: Pet): object {
  return { id: bareNumber(id), name, categoryId: bareNumber(categoryId), status };
}

function badRequest(message: string): OperationAnswer {
  return errorAnswer(400, 'bad_request', message);
}

function methodNotAllowed(allow: string): OperationAnswer {
  return errorAnswer(405, 'method_not_allowed', `Only ${allow} can be used here.`, { allow });
}
