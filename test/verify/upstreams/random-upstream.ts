import type { RateLimitHeaders } from '../../../src/common/call-answer.ts';
import { PLANS } from '../../../src/common/plan.ts';
import type { Plan } from '../../../src/common/plan.ts';
import { between, createRandom } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';

/** How an upstream counts and what it tells, within pet-api.md, and somewhat beside it. */
export interface UpstreamTraits {
  readonly plan: Plan;
  readonly minutes: Shape;
  readonly days: Shape;
  /** How long after midnight a fixed day ends. */
  readonly dayEndsMs: number;
  /** Which window the headers of a response describe: the one with fewer calls left, the fuller one, or one of them always. */
  readonly tells: 'fewer' | 'fuller' | 'minute' | 'day' | 'any';
  readonly resetAs: 'delta' | 'delta-ms' | 'milliseconds' | 'none' | 'seconds' | 'zone';
  readonly sendsDate: boolean;
  /** How far petql's clock is ahead. */
  readonly aheadMs: number;
  /** How late the counts in the headers are. */
  readonly lateMs: number;
  /** How many nodes count for their headers, each its own calls. */
  readonly nodes: number;
  /** What is added to `X-RateLimit-Remaining`. */
  readonly offBy: number;
  /** Calls more or less than the plan that a minute really allows. */
  readonly slack: number;
  /** Calls a second, and at a time, that no document shows. */
  readonly hidden: { readonly perSecond: number; readonly atATime: number } | undefined;
  /** Another program uses so many calls at once, so often. */
  readonly others: { readonly calls: number; readonly everyMs: number } | undefined;
  /** A proxy answers one call in so many, with limits of its own. */
  readonly foreignEvery: number | undefined;
  readonly outages: readonly { readonly fromMs: number; readonly untilMs: number; readonly counts: boolean }[];
  /** The plan from then on. */
  readonly change: { readonly atMs: number; readonly plan: Plan } | undefined;
  /** When petql starts anew without its count. */
  readonly restartsMs: readonly number[];
  readonly latencyMs: readonly [number, number];
}

type Shape = 'first' | 'fixed' | 'sliding';
type WindowName = 'day' | 'minute';

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: RateLimitHeaders;
  /** Whether it is a proxy's. */
  readonly isForeign: boolean;
}

const HOUR_MS = 3_600_000;
const LENGTH_MS = { minute: 60_000, day: 24 * HOUR_MS } as const;
const NONE: RateLimitHeaders = {
  limit: undefined,
  remaining: undefined,
  reset: undefined,
  retryAfterMs: undefined,
  dateMs: undefined,
};

/** Draws an upstream. Most have one or two oddities; one in five has none, and petql alone. */
export function drawTraits(seed: number, startMs: number): UpstreamTraits {
  const random = createRandom(seed);
  const pick = <T>(...choices: readonly T[]) => choices[between(random, 0, choices.length - 1)] as T;
  const isExact = random() < 0.2;
  const odd = <T>(share: number, oddity: () => T, usual: T) => (!isExact && random() < share ? oddity() : usual);
  const plan = drawPlan(random);
  const days = pick<Shape>('fixed', 'fixed', 'first', 'sliding');

  return {
    plan,
    minutes: pick('fixed', 'fixed', 'first', 'sliding'),
    days,
    dayEndsMs: days === 'fixed' ? pick(0, 0, between(random, 0, 24 * 60) * 60_000, 5.5 * HOUR_MS, 18.5 * HOUR_MS) : 0,
    tells: isExact ? 'fewer' : pick('fewer', 'fewer', 'fuller', 'minute', 'day', 'any'),
    resetAs: odd(0.3, () => pick('delta', 'delta-ms', 'milliseconds', 'none', 'zone'), 'seconds'),
    sendsDate: odd(0.3, () => false, true),
    aheadMs: odd(0.3, () => pick(-3_600_000, -60_000, -30_000, -476, 476, 30_000, 3_600_000), 0),
    lateMs: odd(0.2, () => between(random, 0, 5_000), 0),
    nodes: odd(0.1, () => 3, 1),
    offBy: odd(0.1, () => pick(-1, 1), 0),
    slack: odd(0.1, () => pick(-1, 1), 0),
    hidden: odd(
      0.1,
      () => pick({ perSecond: between(random, 5, 20), atATime: 50 }, { perSecond: 50, atATime: 5 }),
      undefined,
    ),
    others: odd(
      0.15,
      () => ({ calls: between(random, 1, plan.perMinute), everyMs: between(random, 8, 16) * HOUR_MS }),
      undefined,
    ),
    foreignEvery: odd(0.1, () => between(random, 50, 500), undefined),
    outages: odd(0.2, () => drawOutages(random, startMs), []),
    change: odd(0.1, () => ({ atMs: startMs + between(random, 1, 50) * HOUR_MS, plan: drawPlan(random) }), undefined),
    restartsMs: odd(0.15, () => [startMs + between(random, 1, 50) * HOUR_MS], []),
    latencyMs: pick([5, 20], [20, 80], [50, 400]),
  };
}

function drawPlan(random: Random): Plan {
  if (random() < 0.5) return PLANS.free;
  if (random() < 0.3) return PLANS.pro;
  const perMinute = between(random, 10, 200);
  return { perMinute, perDay: between(random, 5 * perMinute, 60 * perMinute) };
}

function drawOutages(random: Random, startMs: number) {
  const fromMs = startMs + between(random, 1, 40) * HOUR_MS;
  return [{ fromMs, untilMs: fromMs + between(random, 1, 90) * 60_000, counts: random() < 0.5 }];
}

/** An upstream that is strict about its plan. Times are its own clock's. */
export class RandomUpstream {
  readonly traits: UpstreamTraits;
  readonly #random: Random;
  readonly #counted: number[] = [];
  readonly #byNode: number[][];
  readonly #begins = { minute: -Infinity, day: -Infinity };
  #inFlight = 0;
  #lastSecond: number[] = [];
  #othersAtMs: number;

  constructor(traits: UpstreamTraits, seed: number, startMs: number) {
    this.traits = traits;
    this.#random = createRandom(seed + 1);
    this.#byNode = Array.from({ length: traits.nodes }, () => []);
    this.#othersAtMs = startMs + (traits.others?.everyMs ?? Infinity);
  }

  /** The calls that may be made now, in each window. */
  left(nowMs: number): Record<WindowName, number> {
    this.#callOthers(nowMs);
    return { minute: this.#left('minute', nowMs, this.#counted), day: this.#left('day', nowMs, this.#counted) };
  }

  isDown(nowMs: number): boolean {
    return this.traits.outages.some(({ fromMs, untilMs }) => nowMs >= fromMs && nowMs < untilMs);
  }

  /** A call arrives. `leave` follows once its response is on the way. */
  arrive(nowMs: number): UpstreamResponse {
    const { traits } = this;
    this.#callOthers(nowMs);
    this.#inFlight += 1;
    if (traits.foreignEvery !== undefined && this.#random() < 1 / traits.foreignEvery) return foreignResponse(nowMs);
    const outage = traits.outages.find(({ fromMs, untilMs }) => nowMs >= fromMs && nowMs < untilMs);
    if (outage) {
      if (outage.counts && this.#isAllowed(nowMs)) this.#count(nowMs);
      return { status: 503, headers: NONE, isForeign: true };
    }

    if (this.#breaksHidden(nowMs))
      return { status: 429, headers: { ...this.#headers(nowMs), retryAfterMs: 1_000 }, isForeign: false };
    this.#lastSecond.push(nowMs);
    if (this.#isAllowed(nowMs)) {
      this.#count(nowMs);
      return { status: 200, headers: this.#headers(nowMs), isForeign: false };
    }
    const full = this.#left('day', nowMs, this.#counted) <= 0 ? 'day' : 'minute';
    const retryAfterMs = Math.ceil((this.#freeAtMs(full, nowMs) - nowMs) / 1_000) * 1_000;
    return { status: 429, headers: { ...this.#headers(nowMs), retryAfterMs }, isForeign: false };
  }

  leave(): void {
    this.#inFlight -= 1;
  }

  #isAllowed(nowMs: number): boolean {
    const minute = this.#left('minute', nowMs, this.#counted) + this.traits.slack;
    return minute > 0 && this.#left('day', nowMs, this.#counted) > 0;
  }

  #count(nowMs: number): void {
    for (const name of ['minute', 'day'] as const) {
      const isOver = nowMs >= this.#begins[name] + LENGTH_MS[name];
      if (this.#shape(name) === 'first' && isOver) this.#begins[name] = nowMs;
    }
    this.#counted.push(nowMs);
    this.#byNode[between(this.#random, 0, this.#byNode.length - 1)]?.push(nowMs);
    while ((this.#counted[0] ?? nowMs) < nowMs - 25 * HOUR_MS) this.#counted.shift();
  }

  #breaksHidden(nowMs: number): boolean {
    const { hidden } = this.traits;
    this.#lastSecond = this.#lastSecond.filter((atMs) => atMs > nowMs - 1_000);
    return hidden !== undefined && (this.#lastSecond.length >= hidden.perSecond || this.#inFlight > hidden.atATime);
  }

  #callOthers(nowMs: number): void {
    const { others } = this.traits;
    if (!others) return;
    while (this.#othersAtMs <= nowMs) {
      for (let call = 0; call < others.calls; call += 1)
        if (this.#isAllowed(this.#othersAtMs)) this.#count(this.#othersAtMs);
      this.#othersAtMs += others.everyMs;
    }
  }

  #shape(name: WindowName): Shape {
    return name === 'minute' ? this.traits.minutes : this.traits.days;
  }

  #limit(name: WindowName, nowMs: number): number {
    const { plan, change } = this.traits;
    const { perMinute, perDay } = change && nowMs >= change.atMs ? change.plan : plan;
    return name === 'minute' ? perMinute : perDay;
  }

  #beginMs(name: WindowName, nowMs: number): number {
    const length = LENGTH_MS[name];
    if (this.#shape(name) === 'sliding') return nowMs - length;
    if (this.#shape(name) === 'first') return nowMs >= this.#begins[name] + length ? nowMs : this.#begins[name];
    return nowMs - ((nowMs - (name === 'day' ? this.traits.dayEndsMs : 0)) % length);
  }

  #usedIn(name: WindowName, nowMs: number, counted: readonly number[], untilMs = Infinity): number {
    const beginMs = this.#beginMs(name, nowMs);
    const isSliding = this.#shape(name) === 'sliding';
    let used = 0;
    for (let index = counted.length - 1; index >= 0; index -= 1) {
      const atMs = counted[index] as number;
      if (isSliding ? atMs <= beginMs : atMs < beginMs) break;
      if (atMs <= untilMs) used += 1;
    }
    return used;
  }

  #left(name: WindowName, nowMs: number, counted: readonly number[]): number {
    return this.#limit(name, nowMs) - this.#usedIn(name, nowMs, counted);
  }

  #resetAtMs(name: WindowName, nowMs: number): number {
    const beginMs = this.#beginMs(name, nowMs);
    if (this.#shape(name) !== 'sliding') return beginMs + LENGTH_MS[name];
    return (this.#counted.find((atMs) => atMs > beginMs) ?? nowMs) + LENGTH_MS[name];
  }

  /** When a call is allowed again: of a sliding window whose limit went down, more than one has to leave it. */
  #freeAtMs(name: WindowName, nowMs: number): number {
    if (this.#shape(name) !== 'sliding') return this.#resetAtMs(name, nowMs);
    const inWindow = this.#counted.filter((atMs) => atMs > nowMs - LENGTH_MS[name]);
    return (inWindow[inWindow.length - this.#limit(name, nowMs)] ?? nowMs) + LENGTH_MS[name];
  }

  #headers(nowMs: number): RateLimitHeaders {
    const { traits } = this;
    const counted =
      traits.nodes === 1 ? this.#counted : (this.#byNode[between(this.#random, 0, traits.nodes - 1)] ?? []);
    const told = (['minute', 'day'] as const).map((name) => {
      const limit = this.#limit(name, nowMs);
      const used = this.#usedIn(name, nowMs, counted, traits.lateMs > 0 ? nowMs - traits.lateMs : Infinity);
      return { name, limit, remaining: Math.min(limit, Math.max(0, limit - used + traits.offBy)) };
    }) as [Told, Told];
    const { name, limit, remaining } = this.#chooseTold(told);
    return {
      limit,
      remaining,
      reset: this.#resetValue(this.#resetAtMs(name, nowMs), nowMs),
      retryAfterMs: undefined,
      dateMs: traits.sendsDate ? Math.floor(nowMs / 1_000) * 1_000 : undefined,
    };
  }

  #chooseTold([minute, day]: [Told, Told]): Told {
    const { tells } = this.traits;
    if (tells === 'minute') return minute;
    if (tells === 'day') return day;
    if (tells === 'any') return this.#random() < 0.5 ? minute : day;
    const isFuller = tells === 'fuller' && day.remaining / day.limit < minute.remaining / minute.limit;
    return isFuller || (tells === 'fewer' && day.remaining < minute.remaining) ? day : minute;
  }

  #resetValue(resetAtMs: number, nowMs: number): number | undefined {
    switch (this.traits.resetAs) {
      case 'none':
        return undefined;
      case 'seconds':
        return Math.floor(resetAtMs / 1_000);
      case 'milliseconds':
        return resetAtMs;
      case 'delta':
        return Math.ceil((resetAtMs - nowMs) / 1_000);
      case 'delta-ms':
        return Math.ceil(resetAtMs - nowMs);
      case 'zone':
        return Math.floor((resetAtMs + 5.5 * HOUR_MS) / 1_000);
    }
  }
}

interface Told {
  readonly name: WindowName;
  readonly limit: number;
  readonly remaining: number;
}

/** A proxy's 502, with limits of its own. */
function foreignResponse(nowMs: number): UpstreamResponse {
  const reset = Math.floor(nowMs / 1_000) + 3_600;
  return { status: 502, headers: { ...NONE, limit: 5_000, remaining: 0, reset }, isForeign: true };
}

/** Returns the upstream in a line: what is not as with an exact one. */
export function describeTraits(traits: UpstreamTraits): string {
  const { plan, outages, others, change, ...rest } = traits;
  const words = Object.entries(rest).filter(([, value]) => ![0, undefined, 'seconds', true].includes(value as never));
  const texts = words.map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  if (others) texts.push(`others ${others.calls} each ${others.everyMs / HOUR_MS} h`);
  if (change)
    texts.push(`plan ${change.plan.perMinute}/${change.plan.perDay} from ${new Date(change.atMs).toISOString()}`);
  for (const { fromMs, untilMs } of outages)
    texts.push(`down for ${(untilMs - fromMs) / 60_000} min at ${new Date(fromMs).toISOString()}`);
  return [`${plan.perMinute}/${plan.perDay}`, ...texts].join(', ');
}
