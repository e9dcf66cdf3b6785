import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { httpOrigin } from '../http-origin.ts';
import { sendResponse } from './fault.ts';
import type { Fault } from './fault.ts';
import { errorResponse, runOperation } from './operations.ts';
import type { OperationResponse } from './operations.ts';
import { openPetStore } from './pet-store.ts';
import type { Environment } from './pet-store.ts';
import type { SeedPet } from './seed.ts';
import { DEMO_KEYS, createUsageLimits } from './usage-limits.ts';
import type { Admission, Admit, SandboxKeys } from './usage-limits.ts';

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
  readonly store: Environment;
  readonly method: string;
  /** Below `/v1`, with its query. */
  readonly path: string;
  readonly key: string | undefined;
  /** Empty where it is too large, or came without a valid key. */
  readonly body: string;
  /** The status before any fault. */
  readonly status: number;
}

export interface Sandbox {
  /** The base URL, with its `/v1`. */
  readonly url: string;
  /** The base URL of the staging environment. */
  readonly stagingUrl: string;
  /** Chooses the fault of each later call, for tests; undefined for none. */
  setFault(fault: ((call: Omit<SandboxCall, 'status'>) => Fault | undefined) | undefined): void;
  /** Closes every connection and the store. */
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 262_144;
/** Replaces a request target that is no URL; no path of the API. */
const NOWHERE = 'http://sandbox.invalid/';

/**
 * Starts the pet API of pet-api.md as an HTTP server.
 *
 * @throws Error of node:net when it cannot listen there, of node:sqlite when the file cannot be opened.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { host = '127.0.0.1', port = 0, keys = DEMO_KEYS, clock = systemClock, onCall } = options;
  const pets = openPetStore(options.file, options.seeds);
  const limits = new Map<string, Admit>();
  let faultOf: Parameters<Sandbox['setFault']>[0];

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
    url: `${origin}/v1`,
    stagingUrl: `${origin}/staging/v1`,
    setFault: (fault) => {
      faultOf = fault;
    },
    async close() {
      const closed = once(server, 'close');
      server.close().closeAllConnections();
      await closed;
      pets.close();
    },
  };

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
    const plan = key !== undefined && Object.hasOwn(keys, key) ? keys[key] : undefined;
    const body = await readBody(request, plan ? MAX_BODY_BYTES : 0);
    const url = URL.parse(request.url ?? '/', NOWHERE) ?? new URL(NOWHERE);
    const [, staging, path] = /^(\/staging)?\/v1(\/.*)$/.exec(url.pathname) ?? [];
    const store = staging ? 'staging' : 'production';
    const { method = 'GET' } = request;
    const call = {
      atMs: clock.now(),
      store,
      method,
      path: (path ?? url.pathname) + url.search,
      key,
      body: body ?? '',
    } as const;
    const fault = faultOf?.(call);
    const counted = `${store} ${key}`;
    if (plan && !limits.has(counted)) limits.set(counted, createUsageLimits(plan));
    const admission = plan && limits.get(counted)?.(call.atMs);
    const given = run();
    onCall?.({ ...call, status: given.status });
    if (fault?.delayMs) await setTimeout(fault.delayMs);
    sendResponse(
      response,
      { ...given, headers: { ...standardHeaders(admission, call.atMs), ...given.headers } },
      fault,
    );

    function run(): OperationResponse {
      if (!admission) return errorResponse(401, 'unauthorized', 'The API key is missing or invalid.');
      if (admission.kind !== 'admitted') return rejection(admission, call.atMs);
      if (path === undefined) return errorResponse(404, 'not_found', 'There is nothing at this path.');
      if (body === undefined)
        return errorResponse(413, 'payload_too_large', `Bodies have at most ${MAX_BODY_BYTES} bytes.`);
      if (fault?.refused) return errorResponse(500, 'internal_error', 'The operation was not run.');
      try {
        return runOperation(pets, { ...call, path, body, query: url.searchParams, nowMs: call.atMs });
      } catch (error) {
        // The disk may be full, or another process locks the file.
        return errorResponse(500, 'internal_error', `The store failed: ${(error as Error).message}.`);
      }
    }
  }
}

/** Returns undefined for a larger body, which is read to its end too, so that it gets a response. */
async function readBody(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= maxBytes) chunks.push(chunk);
  }
  return bytes <= maxBytes ? Buffer.concat(chunks).toString('utf8') : undefined;
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
