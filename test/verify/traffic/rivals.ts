import { readFileSync } from 'node:fs';
import Bottleneck from 'bottleneck';
import DataLoader from 'dataloader';
import { createSchema, createYoga } from 'graphql-yoga';
import { request } from 'undici';
import type { Dispatcher } from 'undici';
import type { GatewayOptions } from '../../../src/index.ts';
import type { Plan } from '../../../src/common/plan.ts';

/** What answers GraphQL over HTTP. */
export interface Rival {
  readonly fetch: (request: Request) => Promise<Response> | Response;
  readonly close: () => void;
}

/** Sends a call as soon as it may. */
type Schedule = <Result>(
  context: Pick<Context, 'authorization' | 'signal'>,
  send: () => Promise<Result>,
) => Promise<Result>;

interface Context {
  readonly authorization: string;
  readonly signal: AbortSignal;
  readonly reads: DataLoader<string, unknown>;
}

interface CallOptions extends Pick<Context, 'authorization' | 'signal'> {
  readonly body?: string;
}

const typeDefs = readFileSync(new URL('../../../schema/schema.graphql', import.meta.url), 'utf8');
const ORIGIN = 'http://pet-api.test/v1';
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * graphql-yoga with petql's schema, as people write it: one DataLoader for each request, so that equal reads of an operation are
 * one call. No call is sent for a client that has left.
 */
export function createRival(connections: GatewayOptions['dispatcher'], limiter?: Limiter): Rival {
  // It has what undici's request() calls.
  const dispatcher = connections as Dispatcher;
  const schedule: Schedule = limiter?.schedule ?? ((_context, send) => send());
  const resolvers = {
    Pet: { status: ({ status }: { status?: string }) => status?.toUpperCase() },
    Query: {
      pets: (_root: unknown, { status, limit }: { status?: string; limit: number }, { reads }: Context) =>
        reads.load(`/pets?limit=${limit}${status ? `&status=${status.toLowerCase()}` : ''}`),
      pet: (_root: unknown, { id }: { id: string }, { reads }: Context) => reads.load(`/pets/${id}`),
      petsById: (_root: unknown, { ids }: { ids: string[] }, { reads }: Context) =>
        reads.loadMany(ids.map((id) => `/pets/${id}`)),
    },
    Mutation: {
      async createPet(_root: unknown, { input }: { input: Record<string, string> }, context: Context) {
        const { name, categoryId, status } = input;
        const body = JSON.stringify({ name, categoryId: Number(categoryId), status: status?.toLowerCase() });
        return { pet: await call('POST', '/pets', { ...context, body }), userErrors: [] };
      },
    },
  };
  const yoga = createYoga({
    schema: createSchema({ typeDefs, resolvers }),
    context: ({ request: { headers, signal } }): Context => {
      const authorization = headers.get('authorization') ?? '';
      const read = (path: string) => call('GET', path, { authorization, signal }).catch((error: Error) => error);
      return { authorization, signal, reads: new DataLoader((paths) => Promise.all(paths.map(read))) };
    },
    logging: false,
  });
  return { fetch: (incoming) => yoga.fetch(incoming), close: () => limiter?.close() };

  function call(method: 'GET' | 'POST', path: string, { authorization, signal, body }: CallOptions) {
    return schedule({ authorization, signal }, async () => {
      const headers = { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) };
      const response = await request(ORIGIN + path, { dispatcher, method, headers, signal, body: body ?? null });
      if (response.statusCode === 404) return response.body.dump();
      if (response.statusCode >= 300) throw new Error(`the pet API answered ${response.statusCode}`);
      return response.body.json();
    });
  }
}

export interface Limiter {
  readonly schedule: Schedule;
  readonly close: () => void;
}

/**
 * Bottleneck's own advice for a plan: a reservoir for each key and window. Calls of a minute are spread over it, and no more wait than
 * can go before their clients leave; of six settings it was the one without a 429, and among those that answered most.
 */
export function createLimiter({ perMinute, perDay }: Plan, deadlineMs: number): Limiter {
  const minTime = MINUTE_MS / perMinute;
  const highWater = Math.floor(deadlineMs / minTime);
  const day = new Bottleneck.Group(reservoir(perDay, DAY_MS));
  const minute = new Bottleneck.Group({
    ...reservoir(perMinute, MINUTE_MS),
    minTime,
    highWater,
    strategy: Bottleneck.strategy.OVERFLOW,
  });
  return {
    schedule: ({ authorization, signal }, send) =>
      minute.key(authorization).schedule(() => {
        signal.throwIfAborted();
        return day.key(authorization).schedule(send);
      }),
    close() {
      for (const { limiter } of [...minute.limiters(), ...day.limiters()]) void limiter.disconnect();
    },
  };
}

function reservoir(calls: number, intervalMs: number): Bottleneck.ConstructorOptions {
  // A group forgets a key after five minutes, also while its jobs wait.
  const timeout = 2 * intervalMs;
  return { reservoir: calls, reservoirRefreshAmount: calls, reservoirRefreshInterval: intervalMs, timeout };
}
