import { MAX_LATE_MS } from '../../../src/common/call-times.ts';
import { MOMENT_MS } from '../../../src/common/time-limit.ts';
import { newAccount } from '../../../src/quota/account/account.ts';
import type { Account } from '../../../src/quota/account/format.ts';
import type { Pause } from '../../support/plan-rules.ts';
import type { Wanted } from '../upstreams/petql-line.ts';
import { accountEdges } from './upstream.ts';

export interface LineOptions {
  readonly perMinute: number;
  readonly perDay: number;
  readonly startMs: number;
  /** Who may come, in any order. */
  readonly kinds: readonly Kind[];
  /** How many come on one way. */
  readonly arrivals: number;
  /** 429s on one way. Default 0. */
  readonly limited?: number;
  /** Their `Retry-After`. Default 30 s. */
  readonly retryAfterMs?: number;
  /** How often petql is half a second late. Default 0. */
  readonly delays?: number;
  /** How often something happens while petql is still at work on what happened before. Default 0. */
  readonly races?: number;
}

export type Kind = keyof typeof WANTED;

/** Who waits, for how long at most, and as which visitor. A minute's calls are free again when the patient one's wait ends. */
export const WANTED = {
  write: { kind: 'write', waitMs: 30_000 },
  read: { kind: 'read', waitMs: 10_000 },
  patient: { kind: 'read', waitMs: 61_000 },
  steadfast: { kind: 'read', waitMs: 120_000 },
  greedy: { kind: 'read', waitMs: 90_000, visitor: 'greedy' },
  honest: { kind: 'read', waitMs: 10_000, visitor: 'honest' },
  refresh: { kind: 'read', waitMs: 10_000, isRefresh: true },
  background: { kind: 'read', waitMs: 90_000, isBackground: true },
} as const satisfies Record<string, Wanted>;

/** What is seen of a line from outside. */
export interface LineState {
  nowMs: number;
  /** All that happened, and what petql is still at work on. */
  way: string[];
  unsettled: string[];
  left: { arrivals: number; limited: number; delays: number; races: number };
  account: Account;
  waiters: Waiter[];
  flying: { readonly id: number; readonly kind: Kind; readonly grantedAtMs: number; isAnswered: boolean }[];
  /** When calls for visitors were sent. */
  sent: { readonly visitor: string; readonly atMs: number }[];
  isStopping: boolean;
  /** After a 429, until a call that followed it is served. */
  pause?: Pause | undefined;
}

export interface Waiter {
  readonly id: number;
  readonly kind: Kind;
  readonly deadlineMs: number;
  /** Whether petql let it wait, so that its call is to be sent: unless something comes that goes before it. */
  isPromised: boolean;
}

export function initialOf({ arrivals, delays = 0, limited = 0, races = 0, startMs }: LineOptions): LineState {
  const left = { arrivals, delays, limited, races };
  const none = { way: [], unsettled: [], waiters: [], flying: [], sent: [] };
  return { nowMs: startMs, account: newAccount(''), left, isStopping: false, ...none };
}

/** Returns the next moment at which the account or a deadline changes something. */
export function edgeOf({ account, nowMs, waiters }: LineState): number {
  const deadlines = waiters.flatMap(({ deadlineMs }) => [deadlineMs + MOMENT_MS, deadlineMs + MAX_LATE_MS]);
  return Math.min(Infinity, ...[...accountEdges(account), ...deadlines].filter((atMs) => atMs > nowMs));
}

/** Who goes before whom: a lower place before a higher one. */
export function placeOf(kind: Kind): number {
  return { write: 0, background: 2 }[kind as string] ?? 1;
}

/** Returns for which visitor it is; undefined for all others. */
export function visitorOf(kind: Kind): Wanted['visitor'] {
  const { visitor }: Wanted = WANTED[kind];
  return visitor;
}
