import { WINDOWS, WINDOW_NAMES } from '../../../src/quota/account/slots.ts';
import type { Account } from '../../../src/quota/account/format.ts';
import type { CallAnswer, RateLimitHeaders } from '../../../src/common/call-answer.ts';
import { readRateLimitHeaders } from '../../../src/upstream/rate-limit-headers.ts';
import { writeHeaders } from '../../support/pet-api/headers.ts';
import { createStrictPlan } from '../../support/pet-api/strict-plan.ts';
import type { Arrival, StrictPlanOptions, Tells, ToldHeaders } from '../../support/pet-api/strict-plan.ts';

export interface UpstreamOptions {
  readonly perMinute: number;
  readonly perDay: number;
  readonly windows: StrictPlanOptions['windows'];
  readonly tells: Tells;
  /** How much later than it arrives the upstream counts a call. Default 0. */
  readonly stampsLateMs?: number;
}

/** The response to a call that has arrived. */
export interface Response {
  readonly status: number;
  readonly headers: ToldHeaders;
}

/** petql waits so long for a response. */
export const TIMEOUT_MS = 5_000;
/** A call that petql has given up arrives no later than this after it was sent. */
export const MAX_STRAY_MS = 2 * TIMEOUT_MS;
export const DAY_MS = 86_400_000;

/** Returns the response to a call that arrives now, after the others that were counted. */
export function arriveAt(nowMs: number, arrivals: readonly number[], options: UpstreamOptions): Arrival {
  const { stampsLateMs = 0 } = options;
  const upstream = createStrictPlan({ ...options, stampsLateMs: () => stampsLateMs });
  for (const atMs of arrivals) upstream.arrive(atMs);
  return upstream.arrive(nowMs);
}

/** Returns when the upstream's windows let go of what arrived. */
export function upstreamEdges(arrivals: readonly number[], { windows, stampsLateMs = 0 }: UpstreamOptions): number[] {
  const lengths = WINDOW_NAMES.map((name) => WINDOWS[name].lengthMs);
  return arrivals.flatMap((atMs) =>
    lengths.map((length) => (windows === 'fixed' ? atMs - (atMs % length) : atMs + stampsLateMs) + length),
  );
}

/** Returns when something changes in an account by itself. */
export function accountEdges(account: Account): number[] {
  const { pause, trust } = account;
  const slots = WINDOW_NAMES.flatMap((name) => account[name].slots.map((slot) => slot * WINDOWS[name].slotMs));
  const told = WINDOW_NAMES.flatMap((name) =>
    [account[name].reset?.byMs ?? [], account[name].foreign?.untilMs ?? []].flat(),
  );
  return [pause.untilMs, trust?.againAtMs ?? 0, ...slots, ...told];
}

/** Returns a wait as the header has it, in whole seconds. */
export function retryAfterMsOf(waitMs: number): number {
  return Math.ceil(waitMs / 1_000) * 1_000;
}

/** Returns what petql reads of a response. */
export function answerOf({ headers, status }: Response): CallAnswer {
  const meaning = { 200: 'accepted', 429: 'rate-limited', 503: 'failed' } as const;
  const evidence = { 200: 'works', 429: 'none', 503: 'fails' } as const;
  const rateLimit = readBack(headers);
  return { sent: true, meaning: meaning[status as 200], evidence: evidence[status as 200], isOwn: true, rateLimit };
}

/** What petql read of each, since few differ. */
const read = new Map<string, RateLimitHeaders>();

/** Returns what petql reads of headers that tell this. */
function readBack(told: ToldHeaders): RateLimitHeaders {
  const text = Object.values(told).join(' ');
  const known = read.get(text) ?? readRateLimitHeaders(writeHeaders(told), 0);
  read.set(text, known);
  return known;
}

export const NO_ANSWER: CallAnswer = {
  sent: true,
  meaning: 'other',
  evidence: 'fails',
  isOwn: false,
  rateLimit: undefined,
};
export const UNUSED: CallAnswer = {
  sent: false,
  meaning: 'other',
  evidence: 'none',
  isOwn: false,
  rateLimit: undefined,
};
