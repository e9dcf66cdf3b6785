import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The pet service for whoever asks, under any path; it takes every key, and writes down what arrives. */
export interface EchoUpstream {
  /** Without a path. */
  readonly origin: string;
  readonly arrivals: Arrival[];
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Arrival {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

/** Keys that end in this see more animals than one listing shows. */
export const LARGE_STORE = '-large';

export async function startEchoUpstream(): Promise<EchoUpstream> {
  const arrivals: Arrival[] = [];
  /** By path and key, so that two gateways see the same. */
  const created = new Map<string, number>();
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  server.keepAliveTimeout = 120_000;
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    arrivals.push({ method, path: url, headers });
    const size = headers.authorization?.endsWith(LARGE_STORE) ? 250 : 40;
    const text = Buffer.concat(await request.toArray()).toString();
    if (method === 'POST') {
      const { name } = JSON.parse(text) as { name: string };
      if (name === '') return send(response, 400, refusal(400, 'name', 'The name is empty.'));
      // Digits as they came, since they may be more than a number holds.
      const categoryId = /"categoryId":(-?\d+)/.exec(text)?.[1] ?? '0';
      const whose = `${url} ${headers.authorization}`;
      const id = (created.get(whose) ?? 1_000) + 1;
      created.set(whose, id);
      return send(response, 201, `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId}}`);
    }
    const id = /\/pets\/(-?\d+)/.exec(url)?.[1];
    const status = /status=(\w+)/.exec(url)?.[1];
    const all = Array.from({ length: size }, (_, index) => animal(index + 1));
    if (id === undefined) {
      return send(response, 200, JSON.stringify(all.filter((pet) => !status || pet.status === status).slice(0, 100)));
    }
    const found = all.find((pet) => String(pet.id) === id);
    send(response, found ? 200 : 404, found ? JSON.stringify(found) : refusal(404, 'not_found', 'There is none.'));
  }
}

const STATUSES = ['available', 'pending', 'sold'] as const;

function animal(id: number) {
  return { id, name: `Animal ${id}`, categoryId: 1 + (id % 5), status: STATUSES[id % 3] };
}

function refusal(status: number, code: string, message: string): string {
  return JSON.stringify({ code, message, status });
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}
