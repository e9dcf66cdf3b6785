import type { IncomingMessage, ServerResponse } from 'node:http';
import { serve } from '../serve.ts';
import type { Served } from '../serve.ts';
import { between, createRandom } from '../random.ts';
import { OPERATIONS, isPath, listOf, routeOf } from './contract.ts';
import type { OperationName, Route } from './contract.ts';
import { openConnections } from './connections.ts';
import type { Arrived, Connections, SentCall } from './connections.ts';
import { faultOf } from './fault.ts';
import type { ArrivingCall, CallTarget, Fault, FaultRule, HeaderRecord } from './fault.ts';
import { NOTHING_TOLD, writeHeaders } from './headers.ts';
import { createPetStore, refusal } from './pet-store.ts';
import type { PetStore } from './pet-store.ts';
import { createStrictPlan } from './strict-plan.ts';
import type { StrictPlan, StrictPlanOptions, ToldHeaders } from './strict-plan.ts';

export interface PetApiOptions {
  /** The plan of an API key; a key without one is answered 401. */
  readonly planOf: (key: string) => StrictPlanOptions | undefined;
  /** The pets of an API key. Default: one store for all, with 400 pets of each status, of which a list shows 100. */
  readonly storeOf?: (key: string) => PetStore;
  /** Chooses the latencies. Default 1. */
  readonly seed?: number;
  /** How long a call takes there, in process, and how long its response takes: from, to. Default 0. */
  readonly latencyMs?: readonly [from: number, to: number];
  /** How far its clock is ahead, in milliseconds. Default 0. */
  readonly aheadMs?: number;
  /** Its clock. Default: the Date of the moment. */
  readonly now?: () => number;
}

/**
 * The double of the pet API, for calls in this process or over HTTP. It goes by the timers and the Date of the moment, so by
 * virtual time too.
 */
export interface PetApi {
  /** Connections of one petql, in this process. */
  readonly connect: () => Connections;
  /** Serves it over HTTP. */
  readonly listen: (protocol?: 'http' | 'https') => Promise<PetApiServer>;
  /** The pets that a key sees. */
  readonly storeOf: (key: string) => PetStore;
  /** Every call that arrived, in order. It may be emptied. */
  readonly log: LoggedCall[];
  /** By its own clock, in milliseconds since the epoch. */
  readonly now: () => number;
  /** What goes wrong with calls as they arrive, from now on. Default: nothing. */
  fault: FaultRule;
  /** Other limits for a key from now on. */
  readonly changePlan: (key: string, limits: { readonly perMinute: number; readonly perDay: number }) => void;
  /** Counts calls of others with the same key, which are not in the log. Default: now. Times only grow. */
  readonly countOthers: (key: string, calls: number, atMs?: number) => void;
}

export interface PetApiServer extends Served {
  /** The base address, with its `/v1`. */
  readonly url: string;
}

export interface LoggedCall extends ArrivingCall {
  /** What it was answered with. */
  readonly status: number;
  /** The window that the call went over; undefined for a 429 that is a fault. */
  readonly over: 'day' | 'minute' | undefined;
  /** Whether the key was banned before it. */
  readonly isBanned: boolean;
  readonly retryAfterMs: number | undefined;
  /** When its response was sent, or back in this process; undefined while it is not. */
  answeredAtMs: number | undefined;
}

export function createPetApi(options: PetApiOptions): PetApi {
  const { latencyMs: [minMs, maxMs] = [0, 0], aheadMs = 0, now = () => Date.now() + aheadMs } = options;
  const random = createRandom(options.seed ?? 1);
  const legMs = () => between(random, minMs, maxMs);
  const shared = options.storeOf ? undefined : createPetStore({ size: 1_200, now });
  const storeOf = options.storeOf ?? (() => shared as PetStore);
  const plans = new Map<string, StrictPlan>();
  const log: LoggedCall[] = [];
  let sentCalls = 0;
  const send = () => ({ number: (sentCalls += 1), sentAtMs: now() });

  const petApi: PetApi = {
    connect: () => openConnections({ legMs, send, arrive }),
    listen,
    storeOf,
    log,
    now,
    fault: undefined,
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

  async function listen(protocol?: 'http' | 'https'): Promise<PetApiServer> {
    const server = await serve((request, response) => {
      // A client may be gone in the middle of its request.
      answer(request, response).catch(() => response.destroy());
    }, protocol);
    return { ...server, url: `${server.origin}/v1` };
  }

  async function answer(request: IncomingMessage, into: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request;
    const body = method === 'GET' ? '' : Buffer.concat(await request.toArray()).toString();
    const { fault, response, recordAnswered } = arrive({ method, path, headers, body, ...send() });
    if (fault.connection === 'refused') throw new Error('a server cannot refuse one connection: use the fault proxy');
    if (fault.connection === 'silent') return;
    const waitMs = legMs() + (fault.delayMs ?? 0);
    if (waitMs > 0) await new Promise((resolve) => void setTimeout(resolve, waitMs));
    await fault.held;
    if (fault.connection === 'reset') return void into.socket?.resetAndDestroy();
    into.sendDate = false;
    into.writeHead(response.status, { 'content-length': response.body.length, ...response.headers });
    recordAnswered();
    if (fault.cutAfterBytes === undefined) into.end(response.body);
    else into.write(response.body.subarray(0, fault.cutAfterBytes), () => into.socket?.destroy());
  }

  function arrive(sent: SentCall): Arrived {
    const call = arrivingCall(sent, now());
    const { key, atMs } = call;
    const fault = faultOf(petApi.fault, call) ?? {};
    const { status, isCarriedOut = status === undefined } = fault;
    if (fault.connection === 'refused') return { fault, response: NOTHING, recordAnswered() {} };

    const counted = planOf(key)?.arrive(atMs, fault.isCounted);
    const isServed = counted?.status === 200 && isCarriedOut;
    const served = isServed ? storeOf(key).serve(call) : refusal(counted?.status ?? 401);
    const response = status === undefined ? served : refusal(status);
    const body = typeof fault.body === 'function' ? fault.body(response.body) : (fault.body ?? response.body);
    const told = {
      ...(response.body !== '' && { 'content-type': 'application/json' }),
      ...writeHeaders(toldBy(fault, counted?.headers ?? NOTHING_TOLD)),
    };
    const headers = typeof fault.headers === 'function' ? fault.headers(told) : { ...told, ...fault.headers };

    const logged: LoggedCall = {
      ...call,
      status: response.status,
      over: status === undefined ? counted?.full : undefined,
      isBanned: counted?.status === 403,
      retryAfterMs: retryAfterMsOf(headers['retry-after'], atMs),
      answeredAtMs: undefined,
    };
    log.push(logged);
    return {
      fault,
      response: { status: response.status, headers: definedHeaders(headers), body: Buffer.from(body) },
      recordAnswered: () => void (logged.answeredAtMs = now()),
    };
  }
}

const NOTHING = { status: 0, headers: {}, body: Buffer.alloc(0) };

/** An operation of each method. */
const METHODS = new Map<string, OperationName>([
  [OPERATIONS.listPets.method, 'listPets'],
  [OPERATIONS.createPet.method, 'createPet'],
]);

function arrivingCall(sent: SentCall, atMs: number): ArrivingCall {
  const { method, headers, body } = sent;
  const path = sent.path.replace(/^\/v1(?=\/)/, '');
  const key = String(headers['authorization'] ?? '').replace('Bearer ', '');
  const name = body === '' ? undefined : (JSON.parse(body) as { name: string }).name;
  const route = routeOf(method, path);
  // What is beside the base URL is answered 404.
  const operation = route?.operation ?? (isPath(path) ? undefined : METHODS.get(method));
  // A fault or a checker that took it for another kind or list would judge it wrongly.
  if (!operation) throw new Error(`the double of the pet API has no ${method} ${path}`);
  const { kind } = OPERATIONS[operation];
  const target = targetOf(kind, route);
  return { ...sent, path, key, kind, target, name, atMs };
}

/** A kind of calls that is missing here does not compile. */
function targetOf(kind: ArrivingCall['kind'], route: Route | undefined): CallTarget {
  switch (kind) {
    case 'create':
      return 'create';
    case 'get':
      return route?.id as CallTarget;
    case 'list':
      return listOf(Object.fromEntries(route?.search ?? []));
  }
}

function toldBy({ told = {} }: Fault, truth: ToldHeaders): ToldHeaders {
  return typeof told === 'function' ? told(truth) : { ...truth, ...told };
}

/** Seconds or a date (RFC 9110, section 10.2.3). */
function retryAfterMsOf(value: string | string[] | undefined, nowMs: number): number | undefined {
  if (typeof value !== 'string') return undefined;
  const waitMs = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  return Number.isNaN(waitMs) ? undefined : waitMs;
}

function definedHeaders(headers: HeaderRecord): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string | string[]] => entry[1] !== undefined),
  );
}
