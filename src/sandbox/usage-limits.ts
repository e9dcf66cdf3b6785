/** A plan's two windows (pet-api.md, "Rate limits by plan"). */
interface SandboxPlan {
  readonly name: string;
  readonly perMinute: number;
  readonly perDay: number;
  /** Whether every tenth response describes the day, from the second one on: the limit of a custom minute does not show it. */
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

interface Window {
  readonly limit: number;
  readonly lengthMs: number;
  used: number;
  startMs: number;
}

/** Counts the requests of one key. It shares no code with the gateway's throttle, since that would hide its mistakes. */
export class UsageLimits {
  readonly #minute: Window;
  readonly #day: Window;
  readonly #isDayShown: boolean;
  /** Rejections since a window was full. */
  #rejections = 0;
  /** The end of the window that was full at the last rejection. */
  #rejectedUntilMs = 0;
  #bannedUntilMs = 0;

  constructor({ perMinute, perDay, isDayShown = false }: SandboxPlan) {
    this.#minute = { limit: perMinute, lengthMs: 60_000, used: 0, startMs: 0 };
    this.#day = { limit: perDay, lengthMs: 86_400_000, used: 0, startMs: 0 };
    this.#isDayShown = isDayShown;
  }

  /** Counts a request in both windows, or rejects it without counting. */
  admit(nowMs: number): Admission {
    this.#startWindows(nowMs);
    if (nowMs < this.#bannedUntilMs) return rejected('banned', this.#tightest().limit, this.#bannedUntilMs);

    const full = [this.#day, this.#minute].find(({ used, limit }) => used >= limit);
    if (full) return this.#reject(nowMs, full);

    this.#minute.used += 1;
    this.#day.used += 1;
    return this.#admitted();
  }

  #startWindows(nowMs: number): void {
    for (const window of [this.#minute, this.#day]) {
      const startMs = nowMs - (nowMs % window.lengthMs);
      if (startMs !== window.startMs) Object.assign(window, { startMs, used: 0 });
    }
  }

  #reject(nowMs: number, { limit, startMs, lengthMs }: Window): Admission {
    const endMs = startMs + lengthMs;
    this.#rejections = nowMs < this.#rejectedUntilMs ? this.#rejections + 1 : 1;
    this.#rejectedUntilMs = endMs;
    if (this.#rejections < REJECTIONS_BEFORE_BAN) return rejected('limited', limit, endMs);

    this.#rejections = 0;
    this.#bannedUntilMs = nowMs + BAN_MS;
    return rejected('banned', limit, this.#bannedUntilMs);
  }

  #admitted(): Admission {
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

function rejected(kind: 'banned' | 'limited', limit: number, resetAtMs: number): Admission {
  return { kind, limit, remaining: 0, resetAtMs };
}
