// First, since older versions of Node cannot run the others.
import '../../common/node-version.ts';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { systemClock } from '../../common/clock.ts';
import type { Clock } from '../../common/clock.ts';
import { DispatchedCall } from '../../settings/dispatched-call.ts';
import type { Dispatcher } from '../../settings/dispatched-call.ts';
import type { CallDispatcher } from '../../settings/gateway-options.ts';
import { httpOrigin, listenAddress } from '../../settings/http-origin.ts';
import { DEMO_KEYS } from './demo-keys.ts';
import type { SandboxKeys } from './demo-keys.ts';
import { PetStore } from './pet-store.ts';
import { Responder } from './responder.ts';
import type { SandboxRequest, SandboxResponse } from './responder.ts';
import type { SandboxCall } from './sandbox-call.ts';
import type { SandboxPet } from './seed.ts';
import type { NextFailure, StoryName } from './stories.ts';

export type { SandboxKey, SandboxKeys } from './demo-keys.ts';
export type { SandboxCall } from './sandbox-call.ts';
export type { SandboxPet } from './seed.ts';
export type { StoryFailure, NextFailure, StoryName } from './stories.ts';

export interface SandboxOptions {
  /** API keys with their plans and stories, beside the demo keys. */
  readonly keys?: SandboxKeys;
  /** The story of every key. Any other key is then valid too, on the Free plan. Default: each key has its own. */
  readonly story?: StoryName | undefined;
  /** The pets of a new store. Default: 250. */
  readonly pets?: readonly SandboxPet[];
  /** The file that keeps the pets. Default: in memory. */
  readonly file?: string | undefined;
  /** Default: the machine's. */
  readonly clock?: Pick<Clock, 'now'>;
  /** How long a call takes there, and its response back, in milliseconds. Default 0. */
  readonly latencyMs?: number;
  /** How many calls `calls` keeps, the last ones. Default: all. */
  readonly maxCalls?: number;
}

export interface ListenOptions {
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** Default 0: a free one. */
  readonly port?: number | undefined;
}

type DispatchOptions = Parameters<Dispatcher['dispatch']>[0];
type DispatchHandler = Parameters<Dispatcher['dispatch']>[1];

/** The pet API in this process. */
export interface Sandbox extends AsyncDisposable {
  /** Options of a gateway whose calls it takes in this process: `createGateway({ ...sandbox.gatewayOptions })`. */
  readonly gatewayOptions: { readonly petApiUrl: string; readonly dispatcher: CallDispatcher };
  /** Takes calls in this process as the global `fetch` does, to any origin. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Serves the pet API over HTTP, and returns the base URL there.
   *
   * @throws Error of node:net when it cannot listen there.
   */
  readonly listen: (at?: ListenOptions) => Promise<string>;
  /** Every call that arrived, in order. */
  readonly calls: readonly SandboxCall[];
  /** Lets the next calls fail: `fail({ status: 503, times: 2 })`. Stories go on after them. */
  readonly fail: (failure: NextFailure) => void;
  /** Ends the failures of `fail`. */
  readonly recover: () => void;
  /** Closes every connection and the store. */
  readonly close: () => Promise<void>;
}

/** No host has such a name (RFC 6761), so a gateway without the dispatcher reaches nothing. */
const PET_API_URL = 'http://sandbox.invalid/v1';

/**
 * Creates the pet API of pet-api.md, for development and tests.
 *
 * @throws Error of node:sqlite when the file cannot be opened, SyntaxError or RangeError when the id of a pet is no int64.
 */
export function createSandbox(options: SandboxOptions = {}): Sandbox {
  const { keys, story, clock = systemClock, latencyMs = 0, maxCalls = Infinity } = options;
  const pets = new PetStore(options.file, options.pets);
  const responder = new Responder({ pets, keys: { ...DEMO_KEYS, ...keys }, story, clock, maxCalls });
  const servers: Server[] = [];

  return {
    // A gateway that is closed ends alone.
    gatewayOptions: { petApiUrl: PET_API_URL, dispatcher: { dispatch, async destroy() {} } },
    fetch,
    listen,

    calls: responder.calls,
    fail: (failure) => responder.fail(failure),
    recover: () => responder.recover(),

    close,
    [Symbol.asyncDispose]: close,
  };

  /** Carries a call to the pet API, and its response back. */
  async function carry(request: SandboxRequest): Promise<SandboxResponse> {
    await pass(latencyMs);
    const response = responder.respond(request);
    await pass(latencyMs + response.delayMs);
    return response;
  }

  function dispatch({ method, path, headers, body }: DispatchOptions, handler: DispatchHandler): boolean {
    const { authorization } = headers as Record<string, string>;
    const call = new DispatchedCall(handler);
    void carry({ method, target: path, authorization, body: typeof body === 'string' ? body : '' }).then((response) =>
      response.isLost ? call.break(brokenConnection()) : call.respond(response),
    );
    return true;
  }

  async function fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
    const request = new Request(input, init);
    const { pathname, search } = new URL(request.url);
    const authorization = request.headers.get('authorization') ?? undefined;
    const call = { method: request.method, target: pathname + search, authorization, body: await request.text() };

    // The signal of the new Request ends once that is collected as garbage.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    const { status, headers, body, isLost } = await abortable(carry(call), signal);
    if (isLost) throw new TypeError('fetch failed', { cause: brokenConnection() });
    return new Response(body, { status, headers });
  }

  async function listen({ host = '127.0.0.1', port = 0 }: ListenOptions = {}): Promise<string> {
    const server = createServer((request, response) => {
      serve(request, response).catch(() => response.destroy());
    });
    await once(server.listen(listenAddress(host, port)), 'listening');
    servers.push(server);
    return `${httpOrigin(server)}/v1`;
  }

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = 'GET', url: target = '/', headers: given } = incoming;
    const call = { method, target, authorization: given.authorization, body: await text(incoming) };
    const { status, headers, body, isLost } = await carry(call);
    if (isLost) return void outgoing.destroy();
    outgoing.writeHead(status, { 'content-length': Buffer.byteLength(body), ...headers }).end(body);
  }

  async function close(): Promise<void> {
    for (const server of servers.splice(0)) {
      const closed = once(server, 'close');
      server.close().closeAllConnections();
      await closed;
    }
    pets.close();
  }
}

function pass(ms: number): Promise<void> | undefined {
  return ms > 0 ? new Promise((resolve) => void setTimeout(resolve, ms)) : undefined;
}

function brokenConnection(): Error {
  return Object.assign(new Error('the connection broke before the response'), { code: 'ECONNRESET' });
}

async function abortable<T>(promise: Promise<T>, signal: AbortSignal | null | undefined): Promise<T> {
  if (!signal) return promise;
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', onAbort));
}
