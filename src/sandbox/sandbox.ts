import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { systemClock } from '../clock.ts';
import type { Clock } from '../clock.ts';
import { httpOrigin } from '../settings/http-origin.ts';
import type { OperationResponse } from './operations.ts';
import { PetStore } from './pet-store.ts';
import { createResponder } from './responder.ts';
import type { ResponderOptions } from './responder.ts';
import type { SeedPet } from './seed.ts';
import { DEMO_KEYS } from './usage-limits.ts';
import type { SandboxKeys } from './usage-limits.ts';

export interface SandboxOptions extends Pick<ResponderOptions, 'onCall'> {
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
}

export interface Sandbox {
  /** The base URL, with its `/v1`. */
  readonly url: string;
  /** Closes every connection and the store. */
  readonly close: () => Promise<void>;
}

/**
 * Starts the pet API of pet-api.md as an HTTP server.
 *
 * @throws Error of node:net when it cannot listen there, of node:sqlite when the file cannot be opened.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { host = '127.0.0.1', port = 0, keys = DEMO_KEYS, clock = systemClock, onCall } = options;
  const pets = new PetStore(options.file, options.seeds);
  const respond = createResponder({ pets, keys, clock, onCall });

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
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
    async close() {
      const closed = once(server, 'close');
      server.close().closeAllConnections();
      await closed;
      pets.close();
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url: target = '/', headers } = request;
    const body = await text(request);
    send(response, respond({ method, target, authorization: headers.authorization, body }));
  }
}

function send(response: ServerResponse, { status, headers, body }: OperationResponse): void {
  // The headers have a Date already, by the clock of the sandbox.
  response.sendDate = false;
  const fixed = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  response.writeHead(status, { ...fixed, ...headers }).end(body);
}
