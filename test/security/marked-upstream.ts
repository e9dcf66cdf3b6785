import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The pet API for some keys, each of which sees pets, a plan and waits that no other one has. */
export interface MarkedUpstream {
  readonly url: string;
  /** What arrived, by key; calls with an unknown key are under ''. */
  readonly arrivals: ReadonlyMap<string, Arrival[]>;
  /** What the next call with this key meets. */
  fault(key: string, fault: Fault): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Arrival {
  readonly method: string;
  readonly body: string;
}

export type Fault = 'refused' | 'reset' | 'too many';

/** Tells apart what belongs to each key. */
export interface Mark {
  /** In every name. */
  readonly name: string;
  /** Ids begin after it, and are fewer than a thousand. */
  readonly idsFrom: number;
  /** No plan that is known has it. */
  readonly perMinute: number;
  readonly retryAfterS: number;
}

export function markOf(index: number): Mark {
  return { name: `<${index}>`, idsFrom: 1_000 * (index + 1), perMinute: 2_001 + index, retryAfterS: 100 * (index + 1) };
}

export async function startMarkedUpstream(keys: readonly string[]): Promise<MarkedUpstream> {
  const arrivals = new Map<string, Arrival[]>(['', ...keys].map((key) => [key, []]));
  const faults = new Map<string, Fault>();
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    arrivals,
    fault: (key, fault) => faults.set(key, fault),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    const body = Buffer.concat(await request.toArray()).toString();
    const given = headers.authorization?.replace(/^Bearer /, '') ?? '';
    const key = keys.includes(given) ? given : '';
    const own = arrivals.get(key) ?? [];
    own.push({ method, body });
    const mark = markOf(keys.indexOf(key));
    const fault = key === '' ? 'refused' : faults.get(key);
    faults.delete(key);
    if (fault === 'reset') return void response.socket?.resetAndDestroy();
    response.setHeader('content-type', 'application/json');
    if (fault === 'refused') return void response.writeHead(401).end('{"code":"no","message":"no"}');
    response.setHeader('x-ratelimit-limit', mark.perMinute);
    response.setHeader('x-ratelimit-remaining', mark.perMinute - own.length);
    response.setHeader('x-ratelimit-reset', Math.floor(Date.now() / 60_000) * 60 + 60);
    if (fault === 'too many') {
      response.writeHead(429, { 'retry-after': String(mark.retryAfterS) }).end('{"code":"no","message":"no"}');
      return;
    }
    if (method === 'POST') {
      const { name } = JSON.parse(body) as { name: string };
      const made = own.filter((arrival) => arrival.method === 'POST').length;
      response.writeHead(201).end(JSON.stringify({ id: mark.idsFrom + 500 + made, name, categoryId: 1 }));
      return;
    }
    const pets = [1, 2, 3].map((id) => ({
      id: mark.idsFrom + id,
      name: `Pet of ${mark.name}`,
      categoryId: 1,
      status: 'sold',
    }));
    const id = /\/pets\/(\d+)/.exec(url)?.[1];
    if (id === undefined) return void response.end(JSON.stringify(pets));
    const found = pets.find((pet) => String(pet.id) === id);
    if (found) response.end(JSON.stringify(found));
    else response.writeHead(404).end('{"code":"not_found","message":"none","status":404}');
  }
}
