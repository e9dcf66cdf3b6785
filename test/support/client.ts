import { inspect } from 'node:util';
import type { Answer, Operation, Outcome, WantedPet } from './operation.ts';

export interface QueryOptions {
  readonly variables?: Record<string, unknown>;
  readonly operationName?: string;
  /** Beside the content type and the demo key; null leaves one out. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly signal?: AbortSignal;
  /** Takes the request in place of a connection: a gateway's `fetch`. */
  readonly send?: (request: Request) => Promise<Response>;
}

export interface QueryAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly data: Record<string, any> | null | undefined;
  readonly errors: readonly QueryError[] | undefined;
  readonly extensions: Record<string, any> | undefined;
}

export interface QueryError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions: Record<string, any> & { readonly code: string };
}

/** Sends one operation with the Free demo key, or the headers given. */
export async function post(endpoint: string, query: string, options: QueryOptions = {}): Promise<QueryAnswer> {
  const { variables, operationName, headers, signal } = options;
  // The signal of a Request that was given to fetch is lost once the Request is collected as garbage.
  const { send = (request: Request) => fetch(request, { signal: signal ?? null }) } = options;
  const all = { 'content-type': 'application/json', authorization: 'Bearer demo-free', ...headers };
  const response = await send(
    new Request(endpoint, {
      method: 'POST',
      headers: Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== null),
      body: JSON.stringify({ query, variables, operationName }),
      signal: signal ?? null,
    }),
  );
  return { status: response.status, headers: response.headers, ...((await response.json()) as object) } as QueryAnswer;
}

/** The same as the client's history has it. Never rejects: what goes wrong is the outcome. */
export async function attempt(endpoint: string, query: string, options: QueryOptions): Promise<Outcome> {
  try {
    const { status, headers: _headers, ...answer } = await post(endpoint, query, options);
    return { kind: 'answered', httpStatus: status, answer: answer as Answer };
  } catch (error) {
    if (options.signal?.aborted) return { kind: 'left' };
    return { kind: 'lost', reason: inspect(error, { depth: 1, breakLength: Infinity }).split('\n')[0] ?? '' };
  }
}

const CREATE = 'mutation Create($input: CreatePetInput!) { f0: createPet(input: $input) { pet { id } } }';

export interface CreateOptions {
  readonly key: string;
  readonly pet: WantedPet;
  /** How long it may wait for the quota, in whole seconds. */
  readonly waitSeconds: number;
  readonly signal?: AbortSignal;
  /** Where the operation is written down as it starts. */
  readonly operations?: Operation[];
}

/** Creates one pet over HTTP. Never rejects. */
export async function createPet(endpoint: string, options: CreateOptions): Promise<Operation> {
  const { key, pet, waitSeconds, signal, operations } = options;
  const operation: Operation & { endedMs: number; outcome: Outcome } = {
    key,
    startedMs: performance.now(),
    endedMs: Infinity,
    fields: [{ kind: 'create', pet }],
    outcome: { kind: 'hung' },
  };
  operations?.push(operation);
  operation.outcome = await attempt(endpoint, CREATE, {
    variables: { input: pet },
    headers: { authorization: `Bearer ${key}`, prefer: `wait=${waitSeconds}` },
    ...(signal ? { signal } : {}),
  });
  operation.endedMs = performance.now();
  return operation;
}

/** Returns how many calls of the day petql counts as used; 0 where it knows of none. It costs no call. */
export async function askDayUsed(endpoint: string, key: string): Promise<number> {
  const { data } = await post(endpoint, '{ rateLimit { windows { window used } } }', {
    headers: { authorization: `Bearer ${key}` },
  });
  const windows: { window: string; used: number }[] = data?.['rateLimit'].windows;
  return windows.find(({ window }) => window === 'DAY')?.used ?? 0;
}

/** Returns how many calls wait in one replica. It costs no call. */
export async function askQueued(endpoint: string, key: string): Promise<number> {
  const { data } = await post(endpoint, '{ rateLimit { queued } }', { headers: { authorization: `Bearer ${key}` } });
  return data?.['rateLimit'].queued;
}
