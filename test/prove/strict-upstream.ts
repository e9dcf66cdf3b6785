import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { RateLimitHeaders } from '../../src/upstream/rate-limit-headers.ts';
import { createStrictPlan } from '../throttle/strict-plan.ts';
import type { StrictPlan, StrictPlanOptions } from '../throttle/strict-plan.ts';
import type { Arrival } from './history.ts';

/** The pet service as a real HTTP server that counts strictly, a plan a key, and writes down every arrival. */
export interface StrictUpstream {
  /** The base address, with its `/v1`. */
  readonly url: string;
  readonly arrivals: readonly Arrival[];
  /** Its own clock, in milliseconds since the Unix epoch. */
  now(): number;
  /** How it behaves from now on; what is not named stays. */
  behave(behaviour: Partial<Behaviour>): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface Behaviour {
  /** How long an answer takes, drawn anew for each request, in milliseconds. */
  readonly latencyMs: () => number;
  /** No answer leaves before this settles. */
  readonly held: Promise<void> | undefined;
  /** Every answer is a 429 with this Retry-After, in seconds, and no word of the plan; undefined: as the plan has it. */
  readonly storm: number | undefined;
  /** The last word on an answer's headers. */
  readonly disfigure: (headers: OutgoingHttpHeaders) => OutgoingHttpHeaders;
}

export interface StrictUpstreamOptions {
  /** The plan of every key, or of each. */
  readonly plan: StrictPlanOptions | ((key: string) => StrictPlanOptions);
  /** Carries out what the plan lets through. Default: there are two animals, and whatever is added gets an id. */
  readonly service?: (request: ServiceRequest) => ServiceAnswer;
  /** How far its clock is ahead of ours, in milliseconds. Default 0. */
  readonly aheadMs?: number;
  readonly behaviour?: Partial<Behaviour>;
}

export interface ServiceRequest {
  readonly key: string;
  readonly method: string;
  /** With the `/v1`. */
  readonly url: string;
  readonly body: string;
}

export interface ServiceAnswer {
  readonly status: number;
  /** JSON. */
  readonly body: string;
}

export async function startStrictUpstream(options: StrictUpstreamOptions): Promise<StrictUpstream> {
  const { plan, service = simpleService(), aheadMs = 0 } = options;
  const plans = new Map<string, StrictPlan>();
  const arrivals: Arrival[] = [];
  let behaviour: Behaviour = {
    latencyMs: () => 0,
    held: undefined,
    storm: undefined,
    disfigure: (headers) => headers,
    ...options.behaviour,
  };
  const now = () => Date.now() + aheadMs;
  const server = createServer((request, response) => {
    // Whoever sent it is gone in its midst.
    answer(request, response).catch(() => response.destroy());
  });
  // Longer than petql keeps its own connections, so that none is closed under a call.
  server.keepAliveTimeout = 120_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    arrivals,
    now,
    behave(changes) {
      behaviour = { ...behaviour, ...changes };
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const key = request.headers.authorization?.replace('Bearer ', '') ?? '';
    const { status, headers } = count(key);
    const arrival: Arrival = {
      key,
      method,
      atMs: now(),
      answeredAtMs: Infinity,
      name: undefined,
      status,
      retryAfterMs: headers.retryAfterMs,
    };
    arrivals.push(arrival);
    const text = Buffer.concat(await request.toArray()).toString();
    if (method === 'POST') arrival.name = (JSON.parse(text) as { name: string }).name;
    const given = status === 200 ? service({ key, method, url, body: text }) : refusal(status);
    arrival.status = given.status;
    const latencyMs = behaviour.latencyMs();
    if (latencyMs > 0) await setTimeout(latencyMs);
    await behaviour.held;
    response.sendDate = false;
    response.writeHead(arrival.status, behaviour.disfigure(written(headers))).end(given.body);
    arrival.answeredAtMs = now();
  }

  function count(key: string): { status: number; headers: RateLimitHeaders } {
    const { storm } = behaviour;
    if (storm !== undefined) {
      const dateMs = Math.floor(now() / 1000) * 1000;
      const headers = { limit: undefined, remaining: undefined, reset: undefined, retryAfterMs: storm * 1000, dateMs };
      return { status: 429, headers };
    }
    let own = plans.get(key);
    if (!own) plans.set(key, (own = createStrictPlan(typeof plan === 'function' ? plan(key) : plan)));
    return own.arrive(now());
  }
}

function refusal(status: number): ServiceAnswer {
  return { status, body: JSON.stringify({ code: 'refused', message: 'Not now.', status }) };
}

function simpleService(): (request: ServiceRequest) => ServiceAnswer {
  let lastId = 0;
  return ({ method, url, body }) => {
    if (method === 'POST') {
      lastId += 1;
      return { status: 201, body: JSON.stringify({ id: lastId, ...(JSON.parse(body) as object) }) };
    }
    const id = /\/pets\/(\d+)/.exec(url)?.[1];
    const found = id === undefined ? [animal(1), animal(2)] : animal(Number(id));
    return { status: 200, body: JSON.stringify(found) };
  };
}

function animal(id: number) {
  return { id, name: `Animal ${id}`, categoryId: 1, status: 'available' };
}

function written({ limit, remaining, reset, retryAfterMs, dateMs }: RateLimitHeaders): OutgoingHttpHeaders {
  const headers = {
    'content-type': 'application/json',
    'x-ratelimit-limit': limit,
    'x-ratelimit-remaining': remaining,
    'x-ratelimit-reset': reset,
    'retry-after': retryAfterMs === undefined ? undefined : retryAfterMs / 1000,
    date: dateMs === undefined ? undefined : new Date(dateMs).toUTCString(),
  };
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
}
