import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { resolve as resolvePath } from 'node:path';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { httpOrigin } from '../http-origin.ts';
import { openAnimals } from './animals.ts';
import type { Store } from './animals.ts';
import { ASSUMED } from './assumptions.ts';
import { sendAnswer } from './fault.ts';
import type { Fault } from './fault.ts';
import { createKeyUsage } from './key-usage.ts';
import type { Admission, KeyUsage } from './key-usage.ts';
import { DEMO_KEYS } from './keys.ts';
import type { SandboxKeys, SandboxPlan } from './keys.ts';
import { errorAnswer, runOperation } from './operations.ts';
import type { OperationAnswer, OperationRequest } from './operations.ts';
import type { SeedAnimal } from './seed.ts';

export interface SandboxOptions {
  /** Where to listen. Default 127.0.0.1, on a free port. */
  readonly host?: string;
  readonly port?: number;
  /** The file that keeps the animals. Default: in memory. */
  readonly file?: string;
  /** Default: one key a plan. */
  readonly keys?: SandboxKeys;
  /** What a new store starts with. Default: some 250 animals. */
  readonly seeds?: readonly SeedAnimal[];
  readonly clock?: Pick<Clock, 'now'>;
  /** Is told of every call once it was carried out, in their order. Default: nothing is kept of a call. */
  readonly onCall?: (call: SandboxCall) => void;
}

/** One call as the sandbox received it. */
export interface SandboxCall {
  readonly atMs: number;
  readonly store: Store;
  readonly method: string;
  /** Below `/v1`, with its query. */
  readonly path: string;
  readonly key: string | undefined;
  /** Empty for one that is too large, or that came without a valid key: that is not read. */
  readonly body: string;
  /** The status that it answered with, whatever a fault made of it. */
  readonly status: number;
}

export interface Sandbox {
  /** The base address, with its `/v1`. */
  readonly url: string;
  /** The staging environment's base address. */
  readonly stagingUrl: string;
  /** From now on, what goes wrong with a call: undefined for nothing. */
  setFault(fault: ((call: Omit<SandboxCall, 'status'>) => Fault | undefined) | undefined): void;
  /** Cuts every connection and closes the store. */
  close(): Promise<void>;
}

/** Requests name paths; a path that cannot be read is at none of ours. */
const ANYWHERE = 'http://sandbox.invalid/';

/**
 * The pet adoption service of pet-api.md as a real HTTP server.
 *
 * @throws Error of node:net when it cannot listen there, of node:sqlite when the file cannot be opened.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { host = '127.0.0.1', port = 0, keys = DEMO_KEYS, clock = systemClock, onCall } = options;
  // Resolved: some names, and all that begin with `file:`, mean something else to SQLite, such as a file in memory.
  const file = options.file === undefined ? undefined : resolvePath(options.file);
  const animals = openAnimals(file, options.seeds);
  const usage = new Map<string, KeyUsage>();
  let faultOf: Parameters<Sandbox['setFault']>[0];

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.maxConnections = ASSUMED.connections;
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, host, resolve);
    });
  } catch (error) {
    animals.close();
    throw error;
  }
  const origin = httpOrigin(server);

  return {
    url: `${origin}/v1`,
    stagingUrl: `${origin}/staging/v1`,
    setFault: (fault) => {
      faultOf = fault;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          animals.close();
          resolve();
        });
        server.closeAllConnections();
      }),
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = bearerKey(request.headers.authorization);
    const plan = planOf(key);
    // Whoever has no key has nothing kept of it.
    const body = await readBody(request, plan ? ASSUMED.bodyBytes : 0);
    const url = URL.parse(request.url ?? '/', ANYWHERE) ?? new URL(ANYWHERE);
    const [, staging, path] = /^(\/staging)?\/v1(\/.*)$/.exec(url.pathname) ?? [];
    const store: Store = staging ? 'staging' : 'production';
    const call = {
      atMs: clock.now(),
      store,
      method: request.method ?? 'GET',
      path: (path ?? url.pathname) + url.search,
      key,
      body: body ?? '',
    };
    const fault = faultOf?.(call);
    const admission = plan && usageOf(`${store} ${key}`, plan).admit(call.atMs);
    const given = ((): OperationAnswer => {
      if (!admission) return errorAnswer(401, 'unauthorized', 'The API key is missing or invalid.');
      if (admission.kind !== 'admitted') return refusal(admission, call.atMs);
      if (path === undefined) return errorAnswer(404, 'not_found', 'There is nothing at this path.');
      if (body === undefined)
        return errorAnswer(413, 'payload_too_large', `A body has ${ASSUMED.bodyBytes} bytes at most.`);
      if (fault?.refused) return errorAnswer(500, 'internal_error', 'The operation was not carried out.');
      return carryOut({ ...call, path, query: url.searchParams, nowMs: call.atMs });
    })();
    onCall?.({ ...call, status: given.status });
    if (fault?.delayMs) await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
    sendAnswer(response, { ...given, headers: { ...standardHeaders(admission, call.atMs), ...given.headers } }, fault);
  }

  /** Undefined without a valid key. */
  function planOf(key: string | undefined): SandboxPlan | undefined {
    return key !== undefined && Object.hasOwn(keys, key) ? keys[key] : undefined;
  }

  function usageOf(name: string, plan: SandboxPlan): KeyUsage {
    const known = usage.get(name) ?? createKeyUsage(plan);
    usage.set(name, known);
    return known;
  }

  /** The store's disk may be full, or its file locked by somebody else: the call was counted, and says so. */
  function carryOut(request: OperationRequest): OperationAnswer {
    try {
      return runOperation(animals, request);
    } catch (error) {
      return errorAnswer(500, 'internal_error', `The store failed: ${(error as Error).message}.`);
    }
  }
}

function refusal({ kind, usage }: Admission, nowMs: number): OperationAnswer {
  const seconds = Math.max(1, Math.ceil((usage.resetAtMs - nowMs) / 1000));
  const headers = { 'retry-after': String(seconds) };
  return kind === 'banned'
    ? errorAnswer(403, 'key_banned', 'This API key kept calling after a 429 and is banned for a while.', headers)
    : errorAnswer(429, 'rate_limited', `The plan allows no more requests for ${seconds} seconds.`, headers);
}

function standardHeaders(admission: Admission | undefined, nowMs: number): Record<string, string> {
  const { limit, remaining, resetAtMs } = admission?.usage ?? { limit: 0, remaining: 0, resetAtMs: nowMs };
  return {
    // By the sandbox's own clock, which a test may have moved.
    date: new Date(nowMs).toUTCString(),
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil(resetAtMs / 1000)),
  };
}

function bearerKey(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
}

/** The whole body, or undefined for a larger one; that one is read on to its end, so that it can be answered. */
async function readBody(request: IncomingMessage, mostBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= mostBytes) chunks.push(chunk);
  }
  return bytes <= mostBytes ? Buffer.concat(chunks).toString('utf8') : undefined;
}
