import type { Clock } from '../clock.ts';
import { errorResponse, runOperation } from './operations.ts';
import type { OperationResponse } from './operations.ts';
import type { PetStore } from './pet-store.ts';
import { UsageLimits } from './usage-limits.ts';
import type { Admission, SandboxKeys } from './usage-limits.ts';

/** An HTTP request, over a socket or within the process. */
export interface SandboxRequest {
  readonly method: string;
  /** The path below the origin, with its query. */
  readonly target: string;
  readonly authorization: string | undefined;
  readonly body: string;
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

type Responder = (request: SandboxRequest) => OperationResponse;

export interface ResponderOptions {
  readonly pets: PetStore;
  readonly keys: SandboxKeys;
  readonly clock: Pick<Clock, 'now'>;
  /** Gets every call once it has run, in order. Default: calls are not kept. */
  readonly onCall?: ((call: SandboxCall) => void) | undefined;
}

/** Replaces a request target that is no URL. The API has no such path. */
const NOWHERE = 'http://sandbox.invalid/';

/** Returns a function that authenticates a request, counts it, runs it and responds, with the headers of pet-api.md. */
export function createResponder({ pets, keys, clock, onCall }: ResponderOptions): Responder {
  const limits = new Map(Object.entries(keys).map(([key, plan]) => [key, new UsageLimits(plan)]));

  return (request) => {
    const { method } = request;
    const key = /^Bearer +(\S+)$/i.exec(request.authorization ?? '')?.[1];
    const url = URL.parse(request.target, NOWHERE) ?? new URL(NOWHERE);
    const path = /^\/v1(\/.*)$/.exec(url.pathname)?.[1];
    const nowMs = clock.now();
    const admission = limits.get(key ?? '')?.admit(nowMs);

    const response = run();
    const body = admission ? request.body : '';
    onCall?.({ atMs: nowMs, method, path: (path ?? url.pathname) + url.search, key, body, status: response.status });
    return { ...response, headers: { ...standardHeaders(admission, nowMs), ...response.headers } };

    function run(): OperationResponse {
      if (!admission) return errorResponse(401, 'unauthorized', 'The API key is missing or invalid.');
      if (admission.kind !== 'admitted') return rejection(admission, nowMs);
      if (path === undefined) return errorResponse(404, 'not_found', 'There is nothing at this path.');
      try {
        return runOperation(pets, { method, path, body: request.body, query: url.searchParams, nowMs });
      } catch (error) {
        // The disk may be full, or another process locks the file.
        return errorResponse(500, 'internal_error', `The store failed: ${(error as Error).message}.`);
      }
    }
  };
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
    // The clock of the sandbox, which a test may have moved.
    date: new Date(nowMs).toUTCString(),
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil(resetAtMs / 1000)),
  };
}
