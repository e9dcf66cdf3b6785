/** A plan's two windows (pet-api.md, "Rate limits by plan"). */
interface SandboxPlan {
  readonly name: string;
  readonly perMinute: number;
  readonly perDay: number;
  /** Whether every tenth response describes the day, from the second one on: a custom minute does not tell it. */
  readonly isDayShown?: boolean;
}

/** API keys and their plans. */
export type SandboxKeys = Readonly<Record<string, SandboxPlan>>;

/** One key for each plan. Enterprise is custom: these are one customer's figures. */
export const DEMO_KEYS: SandboxKeys = {
  'demo-free': { name: 'Free', perMinute: 60, perDay: 1_000 },
  'demo-pro': { name: 'Pro', perMinute: 300, perDay: 10_000 },
  'demo-business': { name: 'Business', perMinute: 1_000, perDay: 100_000 },
  'demo-enterprise': { name: 'Enterprise', perMinute: 5_000, perDay: 1_000_000, isDayShown: true },
};

/** Rejections in one window until a ban: nine calls too many may still be in flight. */
const REJECTIONS_BEFORE_BAN = 10;
const BAN_MS = 300_000;

/** The verdict on a request, with the values of its rate-limit headers. */
export interface Admission {
  readonly kind: 'admitted' | 'banned' | 'limited';
  readonly limit: number;
  readonly remaining: number;
  readonly resetAtMs: number;
}

/**
 * Returns a function that counts a request of one key in both windows, or rejects it without counting. It shares no code with
 * the gateway's throttle, since that would hide its mistakes.
 */
export function createUsageLimits({
  perMinute,
  perDay,
  isDayShown = false,
}: SandboxPlan): (nowMs: number) => Admission {
  const minute = { limit: perMinute, lengthMs: 60_000, used: 0, startMs: 0 };
  const day = { limit: perDay, lengthMs: 86_400_000, used: 0, startMs: 0 };
  let rejections = 0;
  let rejectedUntilMs = 0;
  let bannedUntilMs = 0;

  return (nowMs) => {
    for (const window of [minute, day]) {
      const startMs = nowMs - (nowMs % window.lengthMs);
      if (startMs !== window.startMs) Object.assign(window, { startMs, used: 0 });
    }
    if (nowMs < bannedUntilMs) return rejected('banned', tightest().limit, bannedUntilMs);
    const full = [day, minute].find(({ used, limit }) => used >= limit);
    if (full) return reject(nowMs, full.limit, full.startMs + full.lengthMs);
    minute.used += 1;
    day.used += 1;
    const { limit, used, startMs, lengthMs } = isDayShown && day.used % 10 === 2 ? day : tightest();
    return { kind: 'admitted', limit, remaining: limit - used, resetAtMs: startMs + lengthMs };
  };

  function tightest() {
    return day.limit - day.used < minute.limit - minute.used ? day : minute;
  }

  function reject(nowMs: number, limit: number, untilMs: number): Admission {
    rejections = nowMs < rejectedUntilMs ? rejections + 1 : 1;
    rejectedUntilMs = untilMs;
    if (rejections < REJECTIONS_BEFORE_BAN) return rejected('limited', limit, untilMs);
    bannedUntilMs = nowMs + BAN_MS;
    rejections = 0;
    return rejected('banned', limit, bannedUntilMs);
  }
}

function rejected(kind: 'banned' | 'limited', limit: number, resetAtMs: number): Admission {
  return { kind, limit, remaining: 0, resetAtMs };
}
