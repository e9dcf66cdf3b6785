import { STORIES } from '../../../src/program/sandbox/stories.ts';
import type { StoryName } from '../../../src/program/sandbox/stories.ts';
import { createRandom } from '../random.ts';
import type { ToldHeaders } from './strict-plan.ts';
import type { ListName, OPERATIONS, OperationName } from './contract.ts';

/** What goes wrong with one call. The parts can be combined. */
export interface Fault {
  /** Replaces the status, and the body by an Error. The call is not carried out then, unless `isCarriedOut`. */
  readonly status?: number;
  /** Whether a pet is stored, though the response says otherwise. Default: where no status is given. */
  readonly isCarriedOut?: boolean;
  /** Whether the plan counts the call. Default true. */
  readonly isCounted?: boolean;
  /** Replaces the body, or changes it: a list that lies. */
  readonly body?: Buffer | string | ((body: string) => string);
  /** A lie about the plan, in all headers that tell of it: these values, or others made from the true ones. */
  readonly told?: Partial<ToldHeaders> | ((told: ToldHeaders) => ToldHeaders);
  /** Added to those of the plan, or made from them. An undefined one is left out. */
  readonly headers?: HeaderRecord | ((headers: HeaderRecord) => HeaderRecord);
  /** The response leaves so much later; a refused connection takes so long. */
  readonly delayMs?: number;
  /** The response does not leave before this settles. */
  readonly held?: Promise<unknown>;
  /**
   * `silent`: the call arrives, and no response comes. `reset`: it arrives, and its connection is reset. `refused`: it never
   * arrives, so no log has it; in this process alone.
   */
  readonly connection?: 'refused' | 'reset' | 'silent';
  /** The connection is closed after so many bytes of the body. */
  readonly cutAfterBytes?: number;
}

export type HeaderRecord = Readonly<Record<string, string | string[] | undefined>>;

export type CallKind = (typeof OPERATIONS)[OperationName]['kind'];

/** A list by its name, or a number, the id of a pet. */
export type CallTarget = ListName | 'create' | `${bigint}`;

/** What a fault can go by. */
export interface ArrivingCall {
  /** Empty where there is none. */
  readonly key: string;
  readonly method: string;
  /** Below `/v1`, with its query. */
  readonly path: string;
  readonly kind: CallKind;
  readonly target: CallTarget;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** The name of the pet to create. */
  readonly name: string | undefined;
  /** Calls are numbered as they are sent; they may arrive in another order. */
  readonly number: number;
  /** Over HTTP, when it arrived. */
  readonly sentAtMs: number;
  readonly atMs: number;
}

/** A fault of every call, a choice for each, or several: the first one that has a fault for the call decides. */
export type FaultRule = Fault | readonly FaultRule[] | ((call: ArrivingCall) => FaultRule | undefined) | undefined;

export function faultOf(rule: FaultRule, call: ArrivingCall): Fault | undefined {
  if (typeof rule === 'function') return faultOf(rule(call), call);
  if (!isSeveral(rule)) return rule;
  for (const one of rule) {
    const fault = faultOf(one, call);
    if (fault) return fault;
  }
  return undefined;
}

function isSeveral(rule: FaultRule): rule is readonly FaultRule[] {
  return Array.isArray(rule);
}

// Faults. Any object of the parts above is one too.

/** The call arrives, and no response comes. */
export const HANGS: Fault = { connection: 'silent' };
/** The call arrives, is carried out, and its connection is reset. */
export const RESETS: Fault = { connection: 'reset' };
/** Nothing arrives. */
export const REFUSES: Fault = { connection: 'refused' };
export const FORBIDS: Fault = { status: 403 };
export const REJECTS_KEY: Fault = { status: 401 };

export function fails(status = 503, more: Fault = {}): Fault {
  return { status, ...more };
}

/** @param retryAfter in seconds, or as the header has it. Default: no such header. */
export function tooMany(retryAfter?: number | string, more: Fault = {}): Fault {
  return { status: 429, headers: { 'retry-after': retryAfter?.toString() }, ...more };
}

/** What else stands before an API, or serves it, and answers in words of its own: none of them is the Error body. */
const BOXES = {
  nginx: [
    'text/html',
    (status) => `<html><head><title>${status}</title></head><body><center>nginx</center></body></html>`,
  ],
  proxy: ['text/plain', () => 'blocked by policy'],
  cdn: ['application/json', () => '{"message":"Forbidden"}'],
  fastapi: ['application/json', () => '{"detail":"Not acceptable"}'],
  django: ['application/json', () => '{"name":["This field is required."]}'],
  express: [
    'text/html; charset=utf-8',
    (status) => `<!DOCTYPE html><html><body><pre>Error ${status}</pre></body></html>`,
  ],
  go: ['text/plain; charset=utf-8', (status) => `${status} page\n`],
  spring: [
    'application/json',
    (status) => `{"timestamp":"2026-11-21T09:41:07Z","status":${status},"error":"Error","path":"/"}`,
  ],
} as const satisfies Readonly<Record<string, readonly [type: string, body: (status: number) => string]>>;

/** A response in the words of a proxy or a framework, without the headers of the plan. */
export function box(status: number, by: keyof typeof BOXES = 'nginx', headers: HeaderRecord = {}): Fault {
  const [type, bodyOf] = BOXES[by];
  return { status, body: bodyOf(status), headers: () => ({ 'content-type': type, ...headers }) };
}

/** Answers so much later. */
export function slow(delayMs: number): Fault {
  return { delayMs };
}

// Rules: which calls a fault meets.

/** Meets calls of these kinds and targets: `on('list', fails())`, `on(['sold', '350'], HANGS)`. */
export function on(which: Which | readonly Which[], rule: FaultRule): FaultRule {
  const chosen: ReadonlySet<string> = new Set([which].flat());
  return (call) => (chosen.has(call.kind) || chosen.has(call.target) ? rule : undefined);
}

export type Which = CallKind | CallTarget;

export function forKey(key: string, rule: FaultRule): FaultRule {
  return (call) => (call.key === key ? rule : undefined);
}

/** What a story of the sandbox does to the calls of each key. What others use of its plan is `countOthers` here. */
export function story(name: StoryName): FaultRule {
  const keys = new Map<string, { readonly firstAtMs: number; calls: number }>();
  return ({ key, method, atMs }) => {
    const seen = keys.get(key) ?? { firstAtMs: atMs, calls: 0 };
    keys.set(key, seen);
    seen.calls += 1;
    const call = { number: seen.calls, elapsedMs: atMs - seen.firstAtMs, method };
    const { status, retryAfter, delayMs, isLost } = STORIES[name].failureOf?.(call) ?? {};
    return {
      ...(status !== undefined && { status }),
      ...(retryAfter !== undefined && { headers: { 'retry-after': String(retryAfter) } }),
      ...(delayMs !== undefined && { delayMs }),
      ...(isLost && RESETS),
    };
  };
}

/** Meets calls that arrive in this time, by the clock of the pet API; the end is not in it. */
export function during(fromMs: number, untilMs: number, rule: FaultRule): FaultRule {
  return (call) => (call.atMs >= fromMs && call.atMs < untilMs ? rule : undefined);
}

/** Meets so many calls of those that would have a fault, and none after them. */
export function times(count: number, rule: FaultRule): FaultRule {
  let left = count;
  return (call) => {
    const fault = left > 0 ? faultOf(rule, call) : undefined;
    if (fault) left -= 1;
    return fault;
  };
}

/** The first call meets the first rule, the next one the second, and so on round and round; undefined goes well. */
export function inTurn(...rules: readonly FaultRule[]): FaultRule {
  let calls = 0;
  return () => rules[calls++ % rules.length];
}

/**
 * A cache before the pet API: it keeps each list of a key for so long, whatever its call says. What it does not have meets the rule.
 *
 * @param marks which headers of a hit say so. Default: `Age`.
 */
export function cachedFor(ttlMs: number, rule?: FaultRule, marks: CacheMarks = ageOf): FaultRule {
  const kept = new Map<string, { readonly atMs: number; body: string; headers: HeaderRecord }>();
  return (call) => {
    const fault = faultOf(rule, call);
    if (call.kind !== 'list') return fault;
    const name = `${call.key} ${call.path}`;
    const hit = kept.get(name);
    if (hit && call.atMs < hit.atMs + ttlMs) {
      const { body, headers } = hit;
      return { status: 200, body, headers: () => ({ ...headers, ...marks(call.atMs - hit.atMs) }) };
    }

    if (fault) return fault;
    const entry = { atMs: call.atMs, body: '', headers: {} };
    kept.set(name, entry);
    return { body: (body) => (entry.body = body), headers: (headers) => (entry.headers = headers) };
  };
}

export type CacheMarks = (ageMs: number) => HeaderRecord;

/** `Age`, in whole seconds (RFC 9111, section 5.1). */
export const ageOf: CacheMarks = (ageMs) => ({ age: String(Math.floor(ageMs / 1_000)) });

/** Each rule meets its share of the calls; what is left of 1 goes well: `mixed([[0.5, tooMany()], [0.3, HANGS]])`. */
export function mixed(shares: readonly (readonly [share: number, rule: FaultRule])[], seed = 1): FaultRule {
  const random = createRandom(seed);
  return () => {
    let left = random();
    return shares.find(([share]) => (left -= share) < 0)?.[1];
  };
}
