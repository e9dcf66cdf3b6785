import type { Clock } from '../../common/clock.ts';
import { DEMO_KEYS, FREE } from './demo-keys.ts';
import type { SandboxKey, SandboxKeys } from './demo-keys.ts';
import { errorResponse, runOperation } from './operations.ts';
import type { OperationRequest, OperationResponse } from './operations.ts';
import type { PetStore } from './pet-store.ts';
import type { SandboxCall } from './sandbox-call.ts';
import { STORIES } from './stories.ts';
import type { StoryFailure, NextFailure, Story, StoryName } from './stories.ts';
import { UsageLimits } from './usage-limits.ts';
import type { LimitVerdict } from './usage-limits.ts';

/** An HTTP request, over a socket or within the process. */
export interface SandboxRequest {
  readonly method: string;
  /** The path below the origin, with its query. */
  readonly target: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

/** A response, and what becomes of it on its way. */
export interface SandboxResponse extends OperationResponse {
  readonly headers: Readonly<Record<string, string>>;
  readonly delayMs: number;
  readonly isLost: boolean;
}

export interface ResponderOptions {
  readonly pets: PetStore;
  readonly keys: SandboxKeys;
  /** The story of every key; any key is then valid. */
  readonly story: StoryName | undefined;
  readonly clock: Pick<Clock, 'now'>;
  /** How many calls are kept, the last ones. */
  readonly maxCalls: number;
}

/** What the sandbox keeps of one API key. */
interface KeyState {
  readonly limits: UsageLimits;
  readonly failureOf: Story['failureOf'];
  readonly firstAtMs: number;
  calls: number;
}

/** A request with a valid key. There is nothing without a path below `/v1`. */
type Request = Omit<OperationRequest, 'path'> & { readonly path: string | undefined };

/** Replaces a request target that is no URL. The API has no such path. */
const NOWHERE = 'http://sandbox.invalid/';
/** Statuses of what stands in front of an API: it saw no call, so it counts none, and no header is its own. */
const IN_FRONT: ReadonlySet<number> = new Set([502, 503, 504]);

/** Authenticates each request, decides what goes wrong with it, counts it, runs it and responds, with the headers of pet-api.md. */
export class Responder {
  readonly #options: ResponderOptions;
  readonly #keys = new Map<string, KeyState>();
  /** The failures of `fail`, the oldest first, and how many calls each still fails. */
  #failures: { readonly failure: NextFailure; left: number }[] = [];
  readonly #calls: SandboxCall[] = [];

  constructor(options: ResponderOptions) {
    this.#options = options;
  }

  /** The last calls, in their order. */
  get calls(): readonly SandboxCall[] {
    return this.#calls;
  }

  /** @throws RangeError when the status is no error. */
  fail(failure: NextFailure): void {
    const { status = 500, times = 1 } = failure;
    if (!(status >= 400 && status <= 599)) throw new RangeError(`status must be from 400 to 599, got ${status}.`);
    this.#failures.push({ failure, left: times });
  }

  /** Ends the failures of `fail`. */
  recover(): void {
    this.#failures = [];
  }

  respond({ method, target, authorization, body }: SandboxRequest): SandboxResponse {
    const nowMs = this.#options.clock.now();
    const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    const url = URL.parse(target, NOWHERE) ?? new URL(NOWHERE);
    const path = /^\/v1(\/.*)$/.exec(url.pathname)?.[1];
    const state = key === undefined ? undefined : this.#stateOf(key, nowMs);

    const request = { method, path, query: url.searchParams, body, nowMs };
    const failure = state ? this.#failureOf(state, request) : {};
    const response = state ? this.#responseTo(request, state.limits, failure) : unauthorized(nowMs);

    const shownPath = (path ?? url.pathname) + url.search;
    this.#log({ atMs: nowMs, method, path: shownPath, key, body: state ? body : '', status: response.status });
    const { delayMs = 0, isLost = false } = failure;
    return { ...response, headers: { ...responseHeaders(nowMs), ...response.headers }, delayMs, isLost };
  }

  /** Returns undefined for a key that is not valid. */
  #stateOf(key: string, nowMs: number): KeyState | undefined {
    const { keys, story: storyOfAll } = this.#options;
    const plan = planOf(keys, key) ?? (storyOfAll && FREE);
    const known = this.#keys.get(key);
    if (known || !plan) return known;

    const name = storyOfAll ?? plan.story;
    const story: Partial<Story> = name ? STORIES[name] : {};
    const limits = new UsageLimits(plan, story.leaves);
    const state = { limits, failureOf: story.failureOf, firstAtMs: nowMs, calls: 0 };
    this.#keys.set(key, state);
    return state;
  }

  #failureOf(state: KeyState, { method, nowMs }: Request): StoryFailure {
    state.calls += 1;
    const next = this.#failures.find(({ failure, left }) => left > 0 && (failure.method ?? method) === method);
    if (next) {
      next.left -= 1;
      return next.failure;
    }
    return state.failureOf?.({ number: state.calls, elapsedMs: nowMs - state.firstAtMs, method }) ?? {};
  }

  #responseTo(request: Request, limits: UsageLimits, { status, retryAfter }: StoryFailure): OperationResponse {
    const { nowMs } = request;
    const retryHeader = retryAfter === undefined ? undefined : { 'retry-after': String(retryAfter) };
    if (status === 401) return unauthorized(nowMs);
    if (status && IN_FRONT.has(status)) {
      return errorResponse(status, 'unavailable', 'The service is unavailable.', retryHeader);
    }

    const verdict = verdictOf(limits, nowMs, { status, retryAfter });
    if (verdict.kind !== 'admitted') return rejection(verdict, nowMs);

    const response = status
      ? errorResponse(status, status < 500 ? 'rejected' : 'internal_error', 'The request failed.', retryHeader)
      : this.#run(request);
    return { ...response, headers: { ...limitHeaders(verdict), ...response.headers } };
  }

  #run({ path, ...request }: Request): OperationResponse {
    if (path === undefined) return errorResponse(404, 'not_found', 'There is nothing at this path.');
    try {
      return runOperation(this.#options.pets, { ...request, path });
    } catch (error) {
      // The disk may be full, or another process locks the file.
      return errorResponse(500, 'internal_error', `The store failed: ${(error as Error).message}.`);
    }
  }

  #log(call: SandboxCall): void {
    this.#calls.push(call);
    if (this.#calls.length > this.#options.maxCalls) this.#calls.shift();
  }
}

/** A demo key with a hyphen and anything behind it is a new key of the same story and plan. */
function planOf(keys: SandboxKeys, key: string): SandboxKey | undefined {
  if (Object.hasOwn(keys, key)) return keys[key];
  const demoKey = key.slice(0, Math.max(0, key.lastIndexOf('-')));
  return Object.hasOwn(DEMO_KEYS, demoKey) ? keys[demoKey] : undefined;
}

/** Counts the request, unless it fails as one over a limit does. A 429 always says when to retry (pet-api.md). */
function verdictOf(limits: UsageLimits, nowMs: number, { status, retryAfter }: StoryFailure): LimitVerdict {
  const untilMs = nowMs + 1000 * (retryAfter ?? 1);
  if (status === 429) return limits.reject('limited', untilMs);
  if (status === 403 && retryAfter !== undefined) return limits.reject('banned', untilMs);
  return limits.admit(nowMs);
}

function rejection(verdict: LimitVerdict, nowMs: number): OperationResponse {
  const seconds = Math.max(1, Math.ceil((verdict.resetAtMs - nowMs) / 1000));
  const headers = { ...limitHeaders(verdict), 'retry-after': String(seconds) };
  return verdict.kind === 'banned'
    ? errorResponse(403, 'key_banned', 'This API key kept calling after a 429 and is banned for a while.', headers)
    : errorResponse(429, 'rate_limited', `The plan allows no more requests for ${seconds} seconds.`, headers);
}

/** Without a valid key there is no plan. */
function unauthorized(nowMs: number): OperationResponse {
  const headers = limitHeaders({ limit: 0, remaining: 0, resetAtMs: nowMs });
  return errorResponse(401, 'unauthorized', 'The API key is missing or invalid.', headers);
}

function limitHeaders({ limit, remaining, resetAtMs }: Omit<LimitVerdict, 'kind'>): Record<string, string> {
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil(resetAtMs / 1000)),
  };
}

/** The date goes by the clock of the sandbox, which a test may have moved. */
function responseHeaders(nowMs: number): Record<string, string> {
  return { 'content-type': 'application/json', date: new Date(nowMs).toUTCString() };
}
