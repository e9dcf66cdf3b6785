import type { CallEnd } from '../../../src/quota/account/call-end.ts';
import type { Account, Permit } from '../../../src/quota/account/format.ts';
import type { OfflineAccount } from '../../../src/quota/account/offline-share.ts';
import type { Pause } from '../../support/plan-rules.ts';
import type { Response, UpstreamOptions } from './upstream.ts';

/** What may go wrong, and how often at most on one way. */
export interface RedisFaults {
  /** Redis is away for all replicas. */
  readonly away: number;
  /** One replica alone does not reach Redis. */
  readonly cut: number;
  /** Redis loses all data. */
  readonly emptied: number;
  /** Redis goes on with a copy that is older by any number of writes. */
  readonly older: number;
  /** Redis carries out a command of a replica, and its reply is lost. */
  readonly mute: number;
  /** A replica ends with all its calls, and starts again. */
  readonly crash: number;
  /** A call gets no response; whether the upstream counts it is open. */
  readonly lost: number;
}

export const NO_REDIS_FAULTS: RedisFaults = { away: 0, cut: 0, emptied: 0, older: 0, mute: 0, crash: 0, lost: 0 };

export interface ReplicasOptions extends UpstreamOptions {
  readonly replicas: number;
  /** How many of them are of version 0.3. One that crashes starts as a new one. Default 0. */
  readonly old?: number;
  /** Calls under way at a time, of all replicas. */
  readonly maxCalls: number;
  readonly startMs: number;
  readonly faults: Partial<RedisFaults>;
  /** Whether each call is answered before anything else happens: so a search goes as deep as an outage of many minutes. */
  readonly isAtomic?: boolean;
  /** For how long at first the upstream refuses calls that the plan allows, with a Retry-After. Default 0. */
  readonly refusesForMs?: number;
  /** Whether replicas see each change of the account at once, and reach Redis together after an outage. */
  readonly isTogether?: boolean;
  /** 429s that the faults may cost each replica at most. */
  readonly max: { readonly incidents: number; readonly responses: number };
}

/** What a replica keeps of the key. */
export interface Replica {
  /** Whether it is of version 0.3, which knows fewer fields of an account. */
  readonly isOld: boolean;
  /** The account as it saw it last. */
  seen?: Account;
  /** The share that it uses without Redis, and settlements that Redis has not taken. */
  offline?: OfflineAccount & { readonly unwritten: { readonly permit: Permit; readonly end: CallEnd }[] };
  /** Whether Redis failed, and no heartbeat has reached it since. */
  isCut: boolean;
  /** Whether Redis works for others meanwhile. */
  isAlone: boolean;
  /** Whether it has reached Redis since its start. */
  hasContact: boolean;
  /** Whether Redis has lost its heartbeats. */
  hasLostBeats: boolean;
  /** What the last 429 that it met demands, until a probe of it is served. */
  pause?: Pause;
  /** 429s: all, and those of calls that it sent after it knew of the one before. */
  refused: { responses: number; incidents: number; knownAt: number };
}

export interface ReplicaCall {
  readonly by: number;
  readonly permit: Permit;
  /** Whether the permit is of the share that its replica uses without Redis. */
  readonly isOffline: boolean;
  readonly sentAtMs: number;
  /** How many 429s its replica knew when it sent the call. */
  readonly knew: number;
  /** `stray`: its replica has given it up, and it may still arrive. */
  phase: 'arrived' | 'sent' | 'stray';
  /** Once it has arrived. */
  response?: Response;
}

export interface ReplicasState {
  nowMs: number;
  /** `pause`: what a 429 demands that Redis has heard of and not lost, until a probe is served. */
  redis: { account?: Account; copy?: Account; pause?: Pause; isAway: boolean };
  replicas: Replica[];
  calls: ReplicaCall[];
  /** When the upstream counted a call, for two days. */
  arrivals: number[];
  /** What may still go wrong. */
  faults: Record<keyof RedisFaults, number>;
  /** Until when the upstream responds with 429 to all calls. */
  refusesUntilMs: number;
  /** Whether anything has gone wrong that may cost a 429. */
  isHarmed: boolean;
  /** What has become of the permits. */
  permits: { sent: number; leased: number };
}
