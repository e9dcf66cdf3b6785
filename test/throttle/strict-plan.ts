import type { RateLimitHeaders } from '../../src/upstream/rate-limit-headers.ts';

/** An upstream's limits as strictly as one can count them, written without a look at petql's own counting. */
export interface StrictPlan {
  /** One request arrives, by the upstream's own clock. */
  arrive(nowMs: number): Arrival;
  /** Every arrival, in order. */
  readonly arrivals: readonly Arrival[];
  /** Until when nothing may arrive. */
  readonly closedUntilMs: number;
}

export interface Arrival {
  readonly atMs: number;
  readonly status: 200 | 403 | 429;
  readonly headers: RateLimitHeaders;
}

export interface StrictPlanOptions {
  readonly perMinute: number;
  readonly perDay: number;
  /** Windows that begin with the clock's minutes and days, or that look back from each request. */
  readonly windows: 'fixed' | 'sliding';
  /** The same of the day. Default: as the minute's. */
  readonly days?: 'fixed' | 'sliding';
  /** Which window the headers tell of. `changing`: the one with fewer requests left. */
  readonly tells: 'changing' | 'day' | 'minute' | 'nothing';
  readonly resetAs?: 'delta' | 'milliseconds' | 'seconds';
  readonly sendsDate?: boolean;
  /** A key is banned at this many refusals before its Retry-After is over. Default: never. */
  readonly banAt?: number;
}

const LENGTH_MS = { minute: 60_000, day: 86_400_000 };

export function createStrictPlan(options: StrictPlanOptions): StrictPlan {
  const { perMinute, perDay, tells, resetAs = 'seconds', sendsDate = true, banAt = Infinity } = options;
  const shapes = { minute: options.windows, day: options.days ?? options.windows };
  const limits = { minute: perMinute, day: perDay };
  const counted: number[] = [];
  const arrivals: Arrival[] = [];
  let closedUntilMs = 0;
  let early = 0;
  let banned = false;

  return {
    arrivals,
    get closedUntilMs() {
      return closedUntilMs;
    },
    arrive(nowMs) {
      const minute = look('minute', nowMs);
      const day = look('day', nowMs);
      const full = [day, minute].find(({ used, limit }) => used >= limit);
      let status: Arrival['status'] = 200;
      if (banned) status = 403;
      else if (full) status = 429;
      else counted.push(nowMs);
      if (status === 200) {
        minute.used += 1;
        day.used += 1;
      } else if (status === 429) {
        if (nowMs < closedUntilMs) early += 1;
        banned = early + 1 >= banAt;
        closedUntilMs = Math.max(closedUntilMs, full?.resetAtMs ?? 0);
      }
      const arrival = { atMs: nowMs, status, headers: headers({ minute, day, status }, nowMs) };
      arrivals.push(arrival);
      return arrival;
    },
  };

  function look(name: 'day' | 'minute', nowMs: number) {
    const lengthMs = LENGTH_MS[name];
    const windows = shapes[name];
    const startMs = windows === 'fixed' ? nowMs - (nowMs % lengthMs) : nowMs - lengthMs;
    // Counted from the end, since time only grows.
    let used = 0;
    let oldestMs = nowMs;
    for (let index = counted.length - 1; index >= 0; index -= 1) {
      const atMs = counted[index] ?? 0;
      // A sliding window holds what came less than its length ago.
      if (windows === 'fixed' ? atMs < startMs : atMs <= startMs) break;
      used += 1;
      oldestMs = atMs;
    }
    const resetAtMs = windows === 'fixed' ? startMs + lengthMs : oldestMs + lengthMs;
    return { limit: limits[name], used, resetAtMs };
  }

  function headers(
    { minute, day, status }: { minute: Look; day: Look; status: number },
    nowMs: number,
  ): RateLimitHeaders {
    const told = { minute, day, nothing: undefined, changing: left(day) < left(minute) ? day : minute }[tells];
    return {
      limit: told?.limit,
      remaining: told && Math.max(0, left(told)),
      reset: told && resetValue(told.resetAtMs, nowMs),
      retryAfterMs: status === 429 ? Math.ceil((closedUntilMs - nowMs) / 1000) * 1000 : undefined,
      dateMs: sendsDate ? Math.floor(nowMs / 1000) * 1000 : undefined,
    };
  }

  function resetValue(resetAtMs: number, nowMs: number): number {
    if (resetAs === 'milliseconds') return resetAtMs;
    if (resetAs === 'delta') return Math.ceil((resetAtMs - nowMs) / 1000);
    // Cut off, as the unkind would.
    return Math.floor(resetAtMs / 1000);
  }
}

interface Look {
  readonly limit: number;
  readonly used: number;
  readonly resetAtMs: number;
}

function left({ limit, used }: Look): number {
  return limit - used;
}
