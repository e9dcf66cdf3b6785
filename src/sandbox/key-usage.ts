import { ASSUMED } from './assumptions.ts';
import type { SandboxPlan } from './keys.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** What the rate-limit headers of a response say. */
export interface UsageHeaders {
  readonly limit: number;
  readonly remaining: number;
  readonly resetAtMs: number;
}

export type Admission =
  | { readonly kind: 'admitted'; readonly usage: UsageHeaders }
  | { readonly kind: 'limited' | 'banned'; readonly usage: UsageHeaders };

export interface KeyUsage {
  /** Counts a request against both windows, or refuses it without counting. */
  admit(nowMs: number): Admission;
}

/**
 * The requests of one key. The sandbox counts for itself and shares nothing with the gateway's throttle, so that a
 * mistake there cannot hide here.
 */
export function createKeyUsage({ perMinute, perDay }: SandboxPlan): KeyUsage {
  const minute = { limit: perMinute, lengthMs: MINUTE_MS, used: 0, startMs: 0 };
  const day = { limit: perDay, lengthMs: DAY_MS, used: 0, startMs: 0 };
  let refusals = 0;
  let refusedUntilMs = 0;
  let bannedUntilMs = 0;

  return {
    admit(nowMs) {
      for (const window of [minute, day]) {
        const startMs = nowMs - (nowMs % window.lengthMs);
        if (startMs !== window.startMs) Object.assign(window, { startMs, used: 0 });
      }
      if (nowMs < bannedUntilMs) return refused('banned', tightest().limit, bannedUntilMs);
      const full = [day, minute].find(({ used, limit }) => used >= limit);
      if (full) return refuse(nowMs, full.limit, full.startMs + full.lengthMs);
      minute.used += 1;
      day.used += 1;
      return { kind: 'admitted', usage: tightest() };
    },
  };

  function refuse(nowMs: number, limit: number, untilMs: number): Admission {
    refusals = nowMs < refusedUntilMs ? refusals + 1 : 1;
    refusedUntilMs = untilMs;
    if (refusals < ASSUMED.refusalsBeforeBan) return refused('limited', limit, untilMs);
    bannedUntilMs = nowMs + ASSUMED.banMs;
    refusals = 0;
    return refused('banned', limit, bannedUntilMs);
  }

  function tightest(): UsageHeaders {
    const window = day.limit - day.used < minute.limit - minute.used ? day : minute;
    return {
      limit: window.limit,
      remaining: window.limit - window.used,
      resetAtMs: window.startMs + window.lengthMs,
    };
  }
}

function refused(kind: 'limited' | 'banned', limit: number, resetAtMs: number): Admission {
  return { kind, usage: { limit, remaining: 0, resetAtMs } };
}
