import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayOptions } from '../../src/index.ts';
import { createPetStore, refusal } from './pet-store.ts';
import type { PetStore, StoreResponse } from './pet-store.ts';
import { between, createRandom } from './random.ts';
import { serve } from './serve.ts';
import type { Served } from './serve.ts';
import { createStrictPlan } from './strict-plan.ts';
import type { StrictPlan, StrictPlanOptions, ToldHeaders } from './strict-plan.ts';

export interface PetApiOptions {
  /** The plan of an API key; a key without one is answered 401. */
  planOf(key: string): StrictPlanOptions | undefined;
  /** The pets of an API key. Default: one store for all, with 400 pets of each status, of which a list shows 100. */
  readonly storeOf?: (key: string) => PetStore;
  /** Chooses the latencies. Default 1. */
  readonly seed?: number;
  /** How long a call takes there, in process, and how long its response takes: from, to. Default 0. */
  readonly latencyMs?: readonly [from: number, to: number];
  /** How far its clock is ahead, in milliseconds. Default 0. */
  readonly aheadMs?: number;
}

/**
 * The double of the pet API, for calls in this process or over HTTP. It goes by the timers and the Date of the moment, so by
 * virtual time too.
 */
export interface PetApi {
  /** Connections of one petql, in this process. */
  connect(): Connections;
  /** Serves it over HTTP, under any path. */
  listen(): Promise<PetApiServer>;
  /** The pets that a key sees. */
  storeOf(key: string): PetStore;
  /** Every call that arrived, in order. It may be emptied. */
  readonly log: LoggedCall[];
  /** By its own clock, in milliseconds since the epoch. */
  now(): number;
  /** What goes wrong with a call as it arrives; undefined where nothing does. Default: nothing ever. */
  fault: (call: ArrivingCall) => Fault | undefined;
  /** Other limits for a key from now on. */
  changePlan(key: string, limits: { readonly perMinute: number; readonly perDay: number }): void;
  /** Counts calls of others with the same key, which are not in the log. Default: now. Times only grow. */
  countOthers(key: string, calls: number, atMs?: number): void;
}

export interface Connections extends NonNullable<GatewayOptions['dispatcher']> {
  /** As if the process were killed: nothing more is sent, and no response comes. What was sent arrives. */
  cut(): void;
}

export interface PetApiServer extends Served {
  /** The base address, with its `/v1`. */
  readonly url: string;
}

export interface ArrivingCall {
  readonly key: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The name of the pet to create. */
  readonly name: string | undefined;
  /** Calls are numbered as they are sent; they may arrive in another order. */
  readonly number: number;
  /** Over HTTP, when it arrived. */
  readonly sentAtMs: number;
  readonly atMs: number;
}

export interface LoggedCall extends ArrivingCall {
  readonly status: number;
  /** The window that the call went over; undefined for a 429 that is a fault. */
  readonly over: 'day' | 'minute' | undefined;
  /** Whether the key was banned before it. */
  readonly isBanned: boolean;
  readonly retryAfterMs: number | undefined;
  /** When its response was sent, or back in this process; undefined while it is not. */
  answeredAtMs: number | undefined;
}

export interface Fault {
  /** A call with a fault of status is not carried out, unless `isCarriedOut`. */
  readonly status?: number;
  readonly isCarriedOut?: boolean;
  /** Added to those of the plan; an undefined one is left out. */
  readonly headers?: ToldRecord | ((headers: ToldRecord) => ToldRecord);
  /** The response never comes. */
  readonly silent?: boolean;
  /** The response does not leave before this settles. */
  readonly held?: Promise<void>;
}

export type ToldRecord = Readonly<Record<string, string | string[] | undefined>>;

export function createPetApi(options: PetApiOptions): PetApi {
  const { latencyMs: [minMs, maxMs] = [0, 0], aheadMs = 0 } = options;
  const random = createRandom(options.seed ?? 1);
  const legMs = () => between(random, minMs, maxMs);
  const now = () => Date.now() + aheadMs;
  const shared = options.storeOf ? undefined : createPetStore({ size: 1_200, now });
  const storeOf = options.storeOf ?? (() => shared as PetStore);
  const plans = new Map<string, StrictPlan>();
  const log: LoggedCall[] = [];
  let sentCalls = 0;

  const petApi: PetApi = {
    connect,
    listen,
    storeOf,
    log,
    now,
    fault: () => undefined,
    changePlan: (key, limits) => planOf(key)?.change(limits),
    countOthers(key, calls, atMs = now()) {
      for (let call = 0; call < calls; call += 1) planOf(key)?.arrive(atMs);
    },
  };
  return petApi;

  function planOf(key: string): StrictPlan | undefined {
    const known = plans.get(key);
    const given = known ? undefined : options.planOf(key);
    if (!given) return known;
    const plan = createStrictPlan(given);
    plans.set(key, plan);
    return plan;
  }

  function connect(): Connections {
    let isCut = false;
    const cut = () => void (isCut = true);
    return {
      cut,
      // A petql that stops ends its own calls; the pet API stays for the others.
      destroy: async () => cut(),
      dispatch({ method, path, headers, body }, handler) {
        if (isCut) return true;
        const sent = { number: (sentCalls += 1), sentAtMs: now() };
        let timer: NodeJS.Timeout | undefined;
        const controller = {
          aborted: false,
          paused: false,
          reason: null as Error | null,
          abort(reason: Error) {
            if (controller.aborted) return;
            Object.assign(controller, { aborted: true, reason });
            clearTimeout(timer);
            handler.onResponseError?.(controller, reason);
          },
          pause() {},
          resume() {},
        };
        handler.onRequestStart?.(controller, {});
        const receive = async () => {
          const text = typeof body === 'string' ? body : '';
          const call = { method, path, headers: headers as ArrivingCall['headers'], ...sent };
          const { logged, response, fault } = arrive(call, text);
          if (fault?.silent) return;
          await fault?.held;
          timer = setTimeout(() => {
            if (controller.aborted || isCut) return;
            logged.answeredAtMs = now();
            handler.onResponseStart?.(controller, logged.status, response.headers);
            handler.onResponseData?.(controller, Buffer.from(response.body));
            handler.onResponseEnd?.(controller, {});
          }, legMs());
        };
        setTimeout(() => void receive(), legMs());
        return true;
      },
    };
  }

  async function listen(): Promise<PetApiServer> {
    const server = await serve((request, response) => {
      // A client may be gone in the middle of its request.
      answer(request, response).catch(() => response.destroy());
    });
    return { ...server, url: `${server.origin}/v1` };
  }

  async function answer(request: IncomingMessage, into: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request;
    const body = method === 'POST' ? Buffer.concat(await request.toArray()).toString() : '';
    const sent = { number: (sentCalls += 1), sentAtMs: now() };
    const { logged, response, fault } = arrive({ method, path, headers, ...sent }, body);
    if (fault?.silent) return;
    const latencyMs = legMs();
    if (latencyMs > 0) await new Promise((resolve) => void setTimeout(resolve, latencyMs));
    await fault?.held;
    into.sendDate = false;
    into.writeHead(logged.status, { 'content-type': 'application/json', ...response.headers }).end(response.body);
    logged.answeredAtMs = now();
  }

  function arrive(sent: Omit<ArrivingCall, 'atMs' | 'key' | 'name'>, body: string) {
    const key = String(sent.headers['authorization'] ?? '').replace('Bearer ', '');
    const name = body === '' ? undefined : (JSON.parse(body) as { name: string }).name;
    const call: ArrivingCall = { ...sent, key, name, atMs: now() };
    const counted = planOf(key)?.arrive(call.atMs);
    const fault = petApi.fault(call);
    const isServed = counted?.status === 200 && (fault?.status === undefined || fault.isCarriedOut);
    const served = isServed ? storeOf(key).serve({ ...call, body }) : refusal(counted?.status ?? 401);
    const response: StoreResponse = fault?.status === undefined ? served : refusal(fault.status);
    const told = counted ? toldHeaders(counted.headers) : {};
    const headers = typeof fault?.headers === 'function' ? fault.headers(told) : { ...told, ...fault?.headers };
    const logged: LoggedCall = {
      ...call,
      status: response.status,
      over: fault?.status === undefined ? counted?.full : undefined,
      isBanned: counted?.status === 403,
      retryAfterMs: retryAfterMsOf(headers['retry-after'], call.atMs),
      answeredAtMs: undefined,
    };
    log.push(logged);
    return { logged, fault, response: { headers: definedHeaders(headers), body: response.body } };
  }
}

function toldHeaders({ limit, remaining, reset, retryAfterMs, dateMs }: ToldHeaders): ToldRecord {
  return {
    'x-ratelimit-limit': limit?.toString(),
    'x-ratelimit-remaining': remaining?.toString(),
    'x-ratelimit-reset': reset?.toString(),
    'retry-after': retryAfterMs === undefined ? undefined : String(retryAfterMs / 1000),
    date: dateMs === undefined ? undefined : new Date(dateMs).toUTCString(),
  };
}

/** Seconds or a date (RFC 9110, section 10.2.3). */
function retryAfterMsOf(value: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof value !== 'string') return undefined;
  return Number.isNaN(Number(value)) ? Date.parse(value) - nowMs : Number(value) * 1000;
}

function definedHeaders(headers: ToldRecord): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string | string[]] => entry[1] !== undefined),
  );
}
