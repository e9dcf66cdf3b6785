import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { httpOrigin } from '../http-origin.ts';
import { errorResponse, runOperation } from './operations.ts';
import type { OperationResponse } from './operations.ts';
import { openPetStore } from './pet-store.ts';
import type { SeedPet } from './seed.ts';
import { DEMO_KEYS, createUsageLimits } from './usage-limits.ts';
import type { Admission, SandboxKeys } from './usage-limits.ts';

export interface SandboxOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: a free one. */
  readonly port?: number;
  /** The file that keeps the pets. Default: in memory. */
  readonly file?: string | undefined;
  /** Default: one key for each plan. */
  readonly keys?: SandboxKeys;
  /** The pets of a new store. Default: 250. */
  readonly seeds?: readonly SeedPet[];
  /** Default: the machine's. */
  readonly clock?: Pick<Clock, 'now'>;
  /** Gets every call once it has run, in order. Default: calls are not kept. */
  readonly onCall?: (call: SandboxCall) => void;
}

/** One call as the sandbox received it. */
export interface SandboxCall {
  readonly atMs: number;
  readonly method: string;
  /** Below `/v1`, with its query. */
  readonly path: string;
  readonly key: string | undefined;
  /** Empty without a valid key. */
  readonly body: string;
  readonly status: number;
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/** Replaces a request target that is no URL; no path of the API. */
const NOWHERE = 'http://sandbox.invalid/';

/**
 * Starts the pet API of pet-api.md as an HTTP server.
 *
 * @throws Error of node:net when it cannot listen there, of node:sqlite when the file cannot be opened.
 */
export async function startSandbox(options: SandboxOptions = {}) {
  const { host = '127.0.0.1', port = 0, keys = DEMO_KEYS, clock = systemClock, onCall } = options;
  const pets = openPetStore(options.file, options.seeds);
  const limits = new Map(Object.entries(keys).map(([key, plan]) => [key, createUsageLimits(plan)]));

  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy());
  });
  try {
    await once(server.listen(port, host), 'listening');
  } catch (error) {
    pets.close();
    throw error;
  }
  const origin = httpOrigin(server);
  return {
    /** The base URL, with its `/v1`. */
    url: `${origin}/v1`,
    /** Closes every connection and the store. */
    async close() {
      const closed = once(server, 'close');
      server.close().closeAllConnections();
      await closed;
      pets.close();
    },
  };

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
    const admit = limits.get(key ?? '');
    const body = await text(request);
    const url = URL.parse(request.url ?? '/', NOWHERE) ?? new URL(NOWHERE);
    const path = /^\/v1(\/.*)$/.exec(url.pathname)?.[1];
    const { method = 'GET' } = request;
    const call = {
      atMs: clock.now(),
      method,
      path: (path ?? url.pathname) + url.search,
      key,
      body: admit ? body : '',
    } as const;
    const admission = admit?.(call.atMs);
    const given = run();
    onCall?.({ ...call, status: given.status });
    send(response, { ...given, headers: { ...standardHeaders(admission, call.atMs), ...given.headers } });

    function run(): OperationResponse {
      if (!admission) return errorResponse(401, 'unauthorized', 'The API key is missing or invalid.');
      if (admission.kind !== 'admitted') return rejection(admission, call.atMs);
      if (path === undefined) return errorResponse(404, 'not_found', 'There is nothing at this path.');
      try {
        return runOperation(pets, { ...call, path, body, query: url.searchParams, nowMs: call.atMs });
      } catch (error) {
        // The disk may be full, or another process locks the file.
        return errorResponse(500, 'internal_error', `The store failed: ${(error as Error).message}.`);
      }
    }
  }
}

function send(response: ServerResponse, { status, headers, body }: OperationResponse): void {
  // The headers have a Date, by the sandbox's clock.
  response.sendDate = false;
  const fixed = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  response.writeHead(status, { ...fixed, ...headers }).end(body);
}

function rejection({ kind, resetAtMs }: Admission, nowMs: number): OperationResponse {
  const seconds = Math.max(1, Math.ceil((resetAtMs - nowMs) / 1000));
  const headers = { 'retry-after': String(seconds) };
  return kind === 'banned'
    ? errorResponse(403, 'key_banned', 'This API key kept calling after a 429 and is banned for a while.', headers)
    : errorResponse(429, 'rate_limited', `The plan allows no more requests for ${seconds} seconds.`, headers);
}

function standardHeaders(admission: Admission | undefined, nowMs: number): Record<string, string> {
  const { limit, remaining, resetAtMs } = admission ?? { limit: 0, remaining: 0, resetAtMs: nowMs };
  return {
    // By the sandbox's clock, which a test may have moved.
    date: new Date(nowMs).toUTCString(),
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil(resetAtMs / 1000)),
  };
}
