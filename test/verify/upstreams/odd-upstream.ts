import type { RateLimitHeaders } from '../../../src/common/call-answer.ts';
import { between, createRandom } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import { CountedWindow } from './counted-window.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './traits.ts';
import type { Span, UpstreamTraits } from './traits.ts';

export type WindowName = 'day' | 'minute';

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: RateLimitHeaders;
  /** Whether it is a proxy's. */
  readonly isForeign: boolean;
}

interface Told {
  readonly limit: number;
  readonly remaining: number;
  readonly resetAtMs: number;
}

const NONE: RateLimitHeaders = {
  limit: undefined,
  remaining: undefined,
  reset: undefined,
  retryAfterMs: undefined,
  dateMs: undefined,
};
const NAMES = ['minute', 'day'] as const;

/** An upstream that is strict about its limits. Times are its own clock's. */
export class OddUpstream {
  readonly #traits: UpstreamTraits;
  readonly #random: Random;
  readonly #windows: Readonly<Record<WindowName, CountedWindow>>;
  readonly #nodes: readonly Readonly<Record<WindowName, CountedWindow>>[];
  readonly #hidden: CountedWindow | undefined;
  readonly #othersAtMs: number[];
  #inFlight = 0;

  constructor(traits: UpstreamTraits, seed: number, startMs: number) {
    this.#traits = traits;
    this.#random = createRandom(seed + 1);
    this.#windows = windowsOf(traits);
    this.#nodes = Array.from({ length: traits.nodes }, () => windowsOf(traits));
    this.#hidden = traits.hidden && new CountedWindow({ shape: traits.hidden.shape, lengthMs: traits.hidden.inMs });
    this.#othersAtMs = traits.others.map(
      ({ afterMs, everyMs }) => Math.ceil((startMs - afterMs) / everyMs) * everyMs + afterMs,
    );
  }

  /** The calls that may be made now, in each window. */
  left(nowMs: number): Record<WindowName, number> {
    this.#callOthers(nowMs);
    return { minute: this.#left('minute', nowMs) + this.#traits.slack, day: this.#left('day', nowMs) };
  }

  limit(name: WindowName, nowMs: number): number {
    const { plan, change } = this.#traits;
    const { perMinute, perDay } = change && nowMs >= change.atMs ? change.plan : plan;
    return name === 'minute' ? perMinute : perDay;
  }

  /** Whether a call that arrives now is served, as far as chance does not refuse it. */
  isOpen(nowMs: number): boolean {
    const { outages, storms } = this.#traits;
    if (spanAt(outages, nowMs) || spanAt(storms, nowMs)) return false;
    const { minute, day } = this.left(nowMs);
    return minute > 0 && day > 0 && !this.#isHiddenFull(nowMs);
  }

  /** A call arrives. `leave` follows once its response is on the way. */
  arrive(nowMs: number): UpstreamResponse {
    const { atATime = Infinity, failing, foreignEvery = Infinity, outages, random429s, storms } = this.#traits;
    this.#callOthers(nowMs);
    this.#inFlight += 1;
    const chance = this.#random();
    if (chance < 1 / foreignEvery) return foreignResponse(nowMs);
    const outage = spanAt(outages, nowMs);
    if (outage?.counts && this.#isAllowed(nowMs)) this.#count(nowMs);
    if (outage) return { status: 503, headers: NONE, isForeign: true };

    const storm = spanAt(storms, nowMs);
    if (storm) {
      const { retryAfterS, untilMs } = storm;
      return this.#refuse(nowMs, retryAfterS === 'its end' ? untilMs - nowMs : (retryAfterS ?? 0) * SECOND_MS);
    }
    if (chance < random429s) return this.#refuse(nowMs, SECOND_MS);
    if (this.#isHiddenFull(nowMs))
      return this.#refuse(nowMs, (this.#hidden?.freeAtMs(nowMs, this.#traits.hidden?.calls ?? 0) ?? 0) - nowMs);
    if (this.#inFlight > atATime) return this.#refuse(nowMs, SECOND_MS);
    if (!this.#isAllowed(nowMs)) {
      const full = this.#left('day', nowMs) <= 0 ? 'day' : 'minute';
      return this.#refuse(nowMs, this.#windows[full].freeAtMs(nowMs, this.limit(full, nowMs)) - nowMs);
    }
    if (chance < failing) return { status: 500, headers: this.#headers(nowMs), isForeign: false };
    this.#count(nowMs);
    this.#hidden?.count(nowMs);
    return { status: 200, headers: this.#headers(nowMs), isForeign: false };
  }

  leave(): void {
    this.#inFlight -= 1;
  }

  #refuse(nowMs: number, inMs: number): UpstreamResponse {
    const { saysRetryAfter } = this.#traits;
    const retryAfterMs = saysRetryAfter && inMs > 0 ? Math.ceil(inMs / SECOND_MS) * SECOND_MS : undefined;
    return { status: 429, headers: { ...this.#headers(nowMs), retryAfterMs }, isForeign: false };
  }

  #isAllowed(nowMs: number): boolean {
    const { minute, day } = this.left(nowMs);
    return minute > 0 && day > 0;
  }

  #isHiddenFull(nowMs: number): boolean {
    return (this.#hidden?.used(nowMs) ?? 0) >= (this.#traits.hidden?.calls ?? Infinity);
  }

  #count(nowMs: number): void {
    const node = this.#nodes[between(this.#random, 0, this.#nodes.length - 1)];
    for (const name of NAMES) {
      this.#windows[name].count(nowMs);
      node?.[name].count(nowMs);
    }
  }

  #callOthers(nowMs: number): void {
    for (const [index, { calls, everyMs }] of this.#traits.others.entries()) {
      let atMs = this.#othersAtMs[index] as number;
      for (; atMs <= nowMs; atMs += everyMs) {
        for (let call = 0; call < calls; call += 1) {
          if (this.#left('minute', atMs) > 0 && this.#left('day', atMs) > 0) this.#count(atMs);
        }
      }
      this.#othersAtMs[index] = atMs;
    }
  }

  #left(name: WindowName, nowMs: number): number {
    return this.limit(name, nowMs) - this.#windows[name].used(nowMs);
  }

  #headers(nowMs: number): RateLimitHeaders {
    const { sendsDate, tells } = this.#traits;
    const told = tells === 'hour' ? this.#toldHour(nowMs) : this.#toldOf(nowMs);
    if (!told) return NONE;
    return {
      limit: told.limit,
      remaining: told.remaining,
      reset: this.#resetValue(told.resetAtMs, nowMs),
      retryAfterMs: undefined,
      dateMs: sendsDate ? Math.floor(nowMs / SECOND_MS) * SECOND_MS : undefined,
    };
  }

  #toldHour(nowMs: number): Told | undefined {
    const { hidden } = this.#traits;
    if (!hidden || !this.#hidden) return undefined;
    const remaining = Math.max(0, hidden.calls - this.#hidden.used(nowMs));
    return { limit: hidden.calls, remaining, resetAtMs: this.#hidden.resetAtMs(nowMs) };
  }

  #toldOf(nowMs: number): Told | undefined {
    const { lateMs, nodes, offBy, tells } = this.#traits;
    if (tells === 'nothing') return undefined;
    const node = nodes === 1 ? this.#windows : (this.#nodes[between(this.#random, 0, nodes - 1)] ?? this.#windows);
    const toldOf = (name: WindowName): Told => {
      const limit = this.limit(name, nowMs);
      const used = node[name].used(nowMs, lateMs > 0 ? nowMs - lateMs : Infinity);
      const remaining = Math.min(limit, Math.max(0, limit - used + offBy));
      return { limit, remaining, resetAtMs: this.#windows[name].resetAtMs(nowMs) };
    };
    if (tells === 'minute' || tells === 'day') return toldOf(tells);
    if (tells === 'any') return toldOf(this.#random() < 0.5 ? 'minute' : 'day');
    const [minute, day] = [toldOf('minute'), toldOf('day')];
    const isDay =
      tells === 'fuller'
        ? day.remaining / day.limit < minute.remaining / minute.limit
        : day.remaining < minute.remaining;
    return isDay ? day : minute;
  }

  #resetValue(resetAtMs: number, nowMs: number): number | undefined {
    switch (this.#traits.resetAs) {
      case 'none':
        return undefined;
      case 'seconds':
        return Math.floor(resetAtMs / SECOND_MS);
      case 'milliseconds':
        return resetAtMs;
      case 'delta':
        return Math.ceil((resetAtMs - nowMs) / SECOND_MS);
      case 'delta-ms':
        return Math.ceil(resetAtMs - nowMs);
      case 'zone':
        return Math.floor((resetAtMs + 5.5 * HOUR_MS) / SECOND_MS);
      case 'far':
        return Math.floor((resetAtMs + HOUR_MS) / SECOND_MS);
    }
  }
}

function windowsOf({
  days,
  dayEndsMs,
  minutes,
  summerTime,
}: UpstreamTraits): Readonly<Record<WindowName, CountedWindow>> {
  return {
    minute: new CountedWindow({ shape: minutes, lengthMs: MINUTE_MS }),
    day: new CountedWindow({ shape: days, lengthMs: DAY_MS, endsMs: dayEndsMs, moves: summerTime }),
  };
}

function spanAt<Of extends Span>(spans: readonly Of[], nowMs: number): Of | undefined {
  return spans.find(({ fromMs, untilMs }) => nowMs >= fromMs && nowMs < untilMs);
}

/** A proxy's 502, with limits of its own. */
function foreignResponse(nowMs: number): UpstreamResponse {
  const reset = Math.floor(nowMs / SECOND_MS) + 3_600;
  return { status: 502, headers: { ...NONE, limit: 5_000, remaining: 0, reset }, isForeign: true };
}
