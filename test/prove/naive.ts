import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import Bottleneck from 'bottleneck';
import type { Plan } from '../../src/plan.ts';

/**
 * What one builds from Bottleneck's own documentation: a reservoir of the plan's minute that is filled up every minute, in
 * Bottleneck's own Redis mode where there are several, behind the same HTTP interface as far as the load needs it.
 */
export interface NaiveReplica {
  readonly endpoint: string;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface NaiveOptions {
  readonly plan: Plan;
  readonly upstreamUrl: string;
  readonly redisUrl: string | undefined;
}

export async function startNaive({ plan, upstreamUrl, redisUrl }: NaiveOptions): Promise<NaiveReplica> {
  const limiter = new Bottleneck({
    id: 'naive',
    reservoir: plan.perMinute,
    reservoirRefreshAmount: plan.perMinute,
    reservoirRefreshInterval: 60_000,
    maxConcurrent: 50,
    ...(redisUrl === undefined
      ? {}
      : { datastore: 'ioredis', clearDatastore: true, clientOptions: clientOf(redisUrl) }),
  });
  limiter.on('error', () => {});
  await limiter.ready();
  const server = createServer((request, response) => {
    void (async () => {
      const { variables } = JSON.parse(Buffer.concat(await request.toArray()).toString()) as Body;
      const status = await limiter.schedule(() => add(variables.name, request.headers.authorization ?? ''));
      const answer =
        status === 201 ? { data: { createPet: { pet: { id: '1' } } } } : { errors: [{ extensions: REFUSED }] };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    })().catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await limiter.disconnect(true);
      // What it has queued runs into nothing.
      await setTimeout(10);
    },
  };

  async function add(name: string, authorization: string): Promise<number> {
    const response = await fetch(`${upstreamUrl}/pets`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ name, categoryId: 1 }),
    });
    await response.arrayBuffer();
    return response.status;
  }
}

interface Body {
  readonly variables: { readonly name: string };
}

const REFUSED = { code: 'RATE_LIMITED', retryAfterMs: 1_000 };

function clientOf(redisUrl: string): { host: string; port: number } {
  const { hostname, port } = new URL(redisUrl);
  return { host: hostname, port: Number(port) };
}
