import type { Account, Permit } from '../../../src/quota/account/format.ts';
import type { Pause } from '../../support/plan-rules.ts';
import type { Response, UpstreamOptions } from './upstream.ts';

/** What may go wrong, and how often at most on one way. */
export interface Faults {
  /** A call gets no response; whether the upstream counts it is open. */
  readonly lost: number;
  /** The upstream counts a call and responds with a 503. */
  readonly failed: number;
  /** The upstream responds with a 429 and a Retry-After of 30 s though the plan allows the call. */
  readonly limited: number;
  /** The same without Retry-After. */
  readonly curt: number;
  /** Another client uses the key for a call. */
  readonly other: number;
  /** The process ends with all its calls; another one goes on with the stored account. */
  readonly crash: number;
  /** petql's clock goes back by an hour, and stays there. */
  readonly back: number;
  /** A permit is not used. */
  readonly unused: number;
  /** `latencyMs` pass while calls are under way. */
  readonly slow: number;
}

export const NO_FAULTS: Faults = {
  lost: 0,
  failed: 0,
  limited: 0,
  curt: 0,
  other: 0,
  crash: 0,
  back: 0,
  unused: 0,
  slow: 0,
};

export interface KeyOptions extends UpstreamOptions {
  /** What passes while calls are under way. Default 300. */
  readonly latencyMs?: number;
  /** Calls under way at a time. */
  readonly maxCalls: number;
  readonly startMs: number;
  /** 429s that a try may meet: a told reset may have freed a part only, and no header has said so. Default 0. */
  readonly maxTries?: number;
  readonly faults: Partial<Faults>;
}

export interface Call {
  readonly permit: Permit;
  readonly sentAtMs: number;
  /** `stray`: petql has given it up, and it may still arrive. */
  phase: 'arrived' | 'sent' | 'stray';
  /** Once it has arrived. */
  response?: Response;
}

export interface KeyState {
  /** The upstream's clock. */
  nowMs: number;
  /** How far petql's clock is behind it. */
  behindMs: number;
  account: Account;
  calls: Call[];
  /** When the upstream counted a call, for a day. */
  arrivals: number[];
  /** What may still go wrong. */
  faults: Record<keyof Faults, number>;
  /** By petql's clock: what a 429 demands, until a probe is served. */
  pause?: Pause;
  /** By the upstream's clock: until when a window is empty that a response has shown. */
  emptyUntilMs?: number;
  /** 429s in a row, with probes after them that failed; those of calls that were granted before the last one are one with it. */
  refusals: { count: number; atMs: number; pausesUntilMs: number };
  /** 429s of tries. */
  tries: number;
  /** Until when the upstream responds with 429 to all calls. */
  refusesUntilMs: number;
  /** What has become of the permits. */
  permits: { sent: number; returned: number };
}
