import type { Plan } from '../../common/plan.ts';

/** A plan's two windows (pet-api.md, "Rate limits by plan"). */
export interface SandboxPlan extends Plan {
  /** Whether every tenth response describes the day, from the second one on: the limit of a custom minute does not show it. */
  readonly isDayShown?: boolean;
}

/** Rejections in one window until a ban: nine calls too many may still be in flight. */
const REJECTIONS_BEFORE_BAN = 10;
const BAN_MS = 300_000;

/** The verdict on a request, with the values of its rate-limit headers. */
export interface LimitVerdict {
  readonly kind: 'admitted' | 'banned' | 'limited';
  readonly limit: number;
  readonly remaining: number;
  readonly resetAtMs: number;
}

interface Window {
  readonly limit: number;
  readonly lengthMs: number;
  /** Calls that others use as it begins. */
  readonly usedByOthers: number;
  used: number;
  startMs: number;
}

/** Counts the requests of one key. It shares no code with the gateway's quota, since that would hide its mistakes. */
export class UsageLimits {
  readonly #minute: Window;
  readonly #day: Window;
  readonly #isDayShown: boolean;
  /** Rejections since a window was full. */
  #rejections = 0;
  /** The end of the window that was full at the last rejection. */
  #rejectedUntilMs = 0;
  #bannedUntilMs = 0;

  /** @param leaves calls of each window that others leave. Default: all. */
  constructor({ perMinute, perDay, isDayShown = false }: SandboxPlan, leaves: Partial<Plan> = {}) {
    this.#minute = newWindow(perMinute, 60_000, leaves.perMinute);
    this.#day = newWindow(perDay, 86_400_000, leaves.perDay);
    this.#isDayShown = isDayShown;
  }

  /** Counts a request in both windows, or rejects it without counting. */
  admit(nowMs: number): LimitVerdict {
    this.#startWindows(nowMs);
    if (nowMs < this.#bannedUntilMs) return rejected('banned', this.#tightest().limit, this.#bannedUntilMs);

    const full = [this.#day, this.#minute].find(({ used, limit }) => used >= limit);
    if (full) return this.#rejectBy(full, nowMs);

    this.#minute.used += 1;
    this.#day.used += 1;
    return this.#admitted();
  }

  /** Rejects a request without counting, although the plan may allow it. */
  reject(kind: 'banned' | 'limited', untilMs: number): LimitVerdict {
    return rejected(kind, this.#tightest().limit, untilMs);
  }

  #startWindows(nowMs: number): void {
    for (const window of [this.#minute, this.#day]) {
      const startMs = nowMs - (nowMs % window.lengthMs);
      if (startMs !== window.startMs) Object.assign(window, { startMs, used: window.usedByOthers });
    }
  }

  #rejectBy({ limit, startMs, lengthMs }: Window, nowMs: number): LimitVerdict {
    const endMs = startMs + lengthMs;
    this.#rejections = nowMs < this.#rejectedUntilMs ? this.#rejections + 1 : 1;
    this.#rejectedUntilMs = endMs;
    if (this.#rejections < REJECTIONS_BEFORE_BAN) return rejected('limited', limit, endMs);

    this.#rejections = 0;
    this.#bannedUntilMs = nowMs + BAN_MS;
    return rejected('banned', limit, this.#bannedUntilMs);
  }

  #admitted(): LimitVerdict {
    const showsDay = this.#isDayShown && this.#day.used % 10 === 2;
    const { limit, used, startMs, lengthMs } = showsDay ? this.#day : this.#tightest();
    return { kind: 'admitted', limit, remaining: limit - used, resetAtMs: startMs + lengthMs };
  }

  /** Returns the window with fewer requests left, the minute when both have the same. */
  #tightest(): Window {
    const [minute, day] = [this.#minute, this.#day];
    return day.limit - day.used < minute.limit - minute.used ? day : minute;
  }
}

function newWindow(limit: number, lengthMs: number, left = limit): Window {
  return { limit, lengthMs, usedByOthers: Math.max(0, limit - left), used: 0, startMs: 0 };
}

function rejected(kind: 'banned' | 'limited', limit: number, resetAtMs: number): LimitVerdict {
  return { kind, limit, remaining: 0, resetAtMs };
}
