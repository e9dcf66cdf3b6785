import { PLANS, planWith } from '../../../src/common/plan.ts';
import { CountedWindow } from './counted-window.ts';
import type { WantedCall } from './demand.ts';
import { OddUpstream } from './odd-upstream.ts';
import type { UpstreamResponse } from './odd-upstream.ts';
import { DAY_MS, SECOND_MS } from './traits.ts';
import type { Span, UpstreamTraits } from './traits.ts';

export interface OracleOptions {
  readonly seed: number;
  readonly startMs: number;
  readonly endMs: number;
  /** Undefined where clients always want more. */
  readonly wanted: readonly WantedCall[] | undefined;
  /** Pauses that responses asked petql for. */
  readonly pauses: readonly Span[];
}

const LOOKS_EVERY_MS = 5_000;
const MAX_IN_FLIGHT = 50;

/**
 * Returns how many calls a client gets that never calls in vain: it knows the limits and when each window begins, as far as responses
 * can tell. A reset that no header tells is none for it, and a minute that none describes is that of the plan.
 */
export function servedByOracle(
  traits: UpstreamTraits,
  { seed, startMs, endMs, wanted, pauses }: OracleOptions,
): number {
  const upstream = new OddUpstream(traits, seed, startMs);
  const known = new KnownLimits(traits, upstream);
  const everyMs = (traits.hidden?.inMs ?? Infinity) < LOOKS_EVERY_MS ? SECOND_MS : LOOKS_EVERY_MS;
  const [minLatencyMs, maxLatencyMs] = traits.latencyMs;
  const atATime = Math.min(MAX_IN_FLIGHT, traits.atATime ?? Infinity);
  const maxAtOnce = Math.ceil((atATime * everyMs) / ((minLatencyMs + maxLatencyMs) / 2));

  let served = 0;
  let next = 0;
  let waiting: WantedCall[] = [];
  for (let nowMs = startMs; nowMs < endMs; nowMs += everyMs) {
    if (wanted) {
      for (; (wanted[next]?.fromMs ?? Infinity) <= nowMs; next += 1) waiting.push(wanted[next] as WantedCall);
      waiting = waiting.filter(({ untilMs }) => untilMs > nowMs);
      if (waiting.length === 0) continue;
    }
    if (pauses.some(({ fromMs, untilMs }) => nowMs >= fromMs && nowMs < untilMs)) continue;
    const max = wanted ? Math.min(maxAtOnce, waiting.length) : maxAtOnce;
    for (let calls = 0; calls < max; calls += 1) {
      if (!known.allows(nowMs) || !upstream.isOpen(nowMs)) break;
      const response = upstream.arrive(nowMs);
      upstream.leave();
      known.learn(response, nowMs);
      if (response.status !== 200) continue;
      served += 1;
      waiting.shift();
    }
  }
  return served;
}

/** What no response tells an oracle, it counts by the plan and by a window that looks back. */
export class KnownLimits {
  readonly #traits: UpstreamTraits;
  readonly #upstream: OddUpstream;
  readonly #minute = new CountedWindow({ shape: 'sliding', lengthMs: 60_000 });
  readonly #day = new CountedWindow({ shape: 'sliding', lengthMs: DAY_MS });
  /** Whether a header has told when the day ends. */
  #isDayTold = false;

  constructor(traits: UpstreamTraits, upstream: OddUpstream) {
    this.#traits = traits;
    this.#upstream = upstream;
  }

  learn({ headers, status }: UpstreamResponse, nowMs: number): void {
    this.#isDayTold ||= headers.limit === this.#upstream.limit('day', nowMs) && this.#canTellDay;
    if (status !== 200) return;
    this.#minute.count(nowMs);
    this.#day.count(nowMs);
  }

  /** @param share of a day that may be used without a reset that is told. */
  allows(nowMs: number, share = 1): boolean {
    const { isConfigured, tells } = this.#traits;
    const dayLimit = this.#upstream.limit('day', nowMs);
    if (!this.#isDayTold && this.#day.used(nowMs) >= share * dayLimit) return false;
    const isMinuteTold = isConfigured || ['minute', 'fewer', 'fuller', 'any'].includes(tells);
    const assumed = tells === 'day' ? planWith('perDay', dayLimit).perMinute : PLANS.free.perMinute;
    return isMinuteTold || this.#minute.used(nowMs) < assumed;
  }

  /** Whether a header of the day tells when it ends. */
  get #canTellDay(): boolean {
    const { aheadMs, resetAs, sendsDate } = this.#traits;
    if (resetAs === 'none' || resetAs === 'zone' || resetAs === 'far' || resetAs === 'delta-ms') return false;
    return resetAs === 'delta' || sendsDate || Math.abs(aheadMs) < SECOND_MS;
  }
}
