/** An upstream's limits as strictly as one can count them, written without a look at petql's own counting. */
export interface StrictPlan {
  /** One request arrives, by the upstream's own clock. One that is not counted is refused for another reason. */
  readonly arrive: (nowMs: number, isCounted?: boolean) => Arrival;
  /** Other limits from now on; what arrived before still counts. */
  readonly change: (limits: { readonly perMinute: number; readonly perDay: number }) => void;
  /** Every arrival, in order. */
  readonly arrivals: readonly Arrival[];
}

export interface Arrival {
  readonly atMs: number;
  readonly status: 200 | 403 | 429;
  /** The window that was full, where the status is 429. */
  readonly full: 'day' | 'minute' | undefined;
  readonly headers: ToldHeaders;
}

/** The values of the rate-limit headers; undefined for a header that is not sent. */
export interface ToldHeaders {
  readonly limit: number | undefined;
  readonly remaining: number | undefined;
  readonly reset: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly dateMs: number | undefined;
}

/** Which window the headers of a response are about. `changing`: the one with fewer requests left. */
export type Tells = 'changing' | 'day' | 'minute' | 'nothing';

export interface StrictPlanOptions {
  readonly perMinute: number;
  readonly perDay: number;
  /** Windows that begin with the clock's minutes and days, with the first request, or that look back from each request. */
  readonly windows: 'first' | 'fixed' | 'sliding';
  /** The same of the day. Default: as the minute's. */
  readonly days?: 'first' | 'fixed' | 'sliding';
  /** How long after midnight a fixed day ends. Default 0. */
  readonly dayEndsMs?: number;
  /** The same for every response, or a function that chooses before each. */
  readonly tells: Tells | (() => Tells);
  readonly resetAs?: 'delta' | 'milliseconds' | 'seconds';
  readonly sendsDate?: boolean;
  /** How long a request that arrived is in no count yet, as where several servers count together. Default 0. */
  readonly countsLateMs?: number;
  /** Whether a refused request is counted too. Default false. */
  readonly countsRefused?: boolean;
  /** How much later than it arrived the next request is counted. Default 0. */
  readonly stampsLateMs?: () => number;
  /** Max refusals before a Retry-After is over; the next one bans the key. Default: never. */
  readonly banAt?: number;
}

/** A plan that is never exhausted, and no word of it. */
export const UNLIMITED: StrictPlanOptions = {
  perMinute: Infinity,
  perDay: Infinity,
  windows: 'fixed',
  tells: 'nothing',
};

const LENGTH_MS = { minute: 60_000, day: 86_400_000 };

export function createStrictPlan(options: StrictPlanOptions): StrictPlan {
  const { perMinute, perDay, tells, resetAs = 'seconds', sendsDate = true } = options;
  const { banAt = Infinity, countsLateMs = 0, countsRefused = false, dayEndsMs = 0, stampsLateMs = () => 0 } = options;
  const shapes = { minute: options.windows, day: options.days ?? options.windows };
  const limits = { minute: perMinute, day: perDay };
  const counted: number[] = [];
  /** Arrived, and in no count yet. */
  const uncounted: number[] = [];
  /** The oldest that is in the window. */
  const firsts = { minute: 0, day: 0 };
  /** When the windows of the first request began. */
  const begins = { minute: -Infinity, day: -Infinity };
  const arrivals: Arrival[] = [];
  let pausedUntilMs = 0;
  let early = 0;
  let banned = false;

  return {
    arrivals,
    arrive(nowMs, isCounted = true) {
      while ((uncounted[0] ?? Infinity) <= nowMs - countsLateMs) counted.push(uncounted.shift() as number);
      const minute = look('minute', nowMs);
      const day = look('day', nowMs);
      const full = [day, minute].find((window) => left(window) <= 0);
      let status: Arrival['status'] = 200;
      if (banned) status = 403;
      else if (full) status = 429;
      if (isCounted && (status === 200 || (status === 429 && countsRefused)))
        (countsLateMs > 0 ? uncounted : counted).push(Math.max(counted.at(-1) ?? 0, nowMs + stampsLateMs()));
      if (status === 200 && isCounted && countsLateMs === 0) {
        minute.used += 1;
        day.used += 1;
      } else if (status === 429) {
        if (nowMs < pausedUntilMs) early += 1;
        banned = early + 1 >= banAt;
        pausedUntilMs = Math.max(pausedUntilMs, full?.resetAtMs ?? 0);
      }
      const refusedBy = status === 429 ? full?.name : undefined;
      const arrival = { atMs: nowMs, status, full: refusedBy, headers: headers({ minute, day, status }, nowMs) };
      arrivals.push(arrival);
      return arrival;
    },
    change({ perMinute: minute, perDay: day }) {
      Object.assign(limits, { minute, day });
    },
  };

  function look(name: 'day' | 'minute', nowMs: number): Look {
    const lengthMs = LENGTH_MS[name];
    const isFixed = shapes[name] === 'fixed';
    const isFirst = shapes[name] === 'first';
    if (isFirst && nowMs >= begins[name] + lengthMs) begins[name] = nowMs;
    const inWindowMs = name === 'day' ? (nowMs - dayEndsMs) % lengthMs : nowMs % lengthMs;
    const startMs = isFirst ? begins[name] : nowMs - (isFixed ? inWindowMs : lengthMs);
    // A sliding window holds what came less than its length ago. Time only grows, so what is out stays out.
    const isOut = (atMs = nowMs) => (isFixed || isFirst ? atMs < startMs : atMs <= startMs);
    while (firsts[name] < counted.length && isOut(counted[firsts[name]])) firsts[name] += 1;
    const resetAtMs = (isFixed || isFirst ? startMs : (counted[firsts[name]] ?? nowMs)) + lengthMs;
    return { name, limit: limits[name], used: counted.length - firsts[name], resetAtMs };
  }

  function headers({ minute, day, status }: { minute: Look; day: Look; status: number }, nowMs: number): ToldHeaders {
    const tighter = left(day) < left(minute) ? day : minute;
    const told = { minute, day, nothing: undefined, changing: tighter }[typeof tells === 'string' ? tells : tells()];
    return {
      limit: told?.limit,
      remaining: told && Math.max(0, left(told)),
      reset: told && resetValue(told.resetAtMs, nowMs),
      retryAfterMs: status === 429 ? Math.ceil((pausedUntilMs - nowMs) / 1000) * 1000 : undefined,
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
  readonly name: 'day' | 'minute';
  readonly limit: number;
  used: number;
  readonly resetAtMs: number;
}

function left({ limit, used }: Look): number {
  return limit - used;
}
