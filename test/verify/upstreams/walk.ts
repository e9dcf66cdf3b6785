import { PLANS } from '../../../src/common/plan.ts';
import type { Log } from '../../../src/common/log.ts';
import type { LineAnswer } from '../../../src/line/line-call.ts';
import { startVirtualTime } from '../../../src/program/simulate/virtual-time.ts';
import { between, createRandom } from '../../support/random.ts';
import { wantedCalls } from './demand.ts';
import type { WantedCall } from './demand.ts';
import { drawTraits } from './kinds.ts';
import type { DrawOptions, Kind } from './kinds.ts';
import { OddUpstream } from './odd-upstream.ts';
import type { UpstreamResponse } from './odd-upstream.ts';
import { KnownLimits, servedByOracle } from './oracle.ts';
import { PetqlLine } from './petql-line.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, describeTraits } from './traits.ts';
import type { Span, UpstreamTraits } from './traits.ts';

/** What happened in the hours of one upstream. */
export interface Walk {
  readonly about: string;
  /** Calls that were served, and those that an oracle gets served. */
  readonly served: number;
  readonly possible: number;
  /** Calls that were answered 429. */
  readonly refused: number;
  /** 429s after no other one for ten seconds, of each day. */
  readonly incidents: readonly number[];
  /** Of one incident at most: 429s to calls that were sent after its first one had arrived. */
  readonly late: number;
  /** The longest time in which calls were wanted and possible, and fewer than a tenth of them were served. */
  readonly silentMs: number;
}

export interface WalkOptions extends Pick<DrawOptions, 'hours' | 'isFree'> {
  readonly log?: Log;
  /** Gets each response. */
  readonly onResponse?: (call: {
    readonly sentAtMs: number;
    readonly nowMs: number;
    readonly response: UpstreamResponse;
  }) => void;
}

export const START_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
const MAX_WAIT_MS = 10_000;
/** A client comes back within this time, whatever it was told. */
const MAX_REST_MS = HOUR_MS;
const LOOKS_EVERY_MS = 20_000;
const INCIDENT_MS = 10_000;
/** What a client may take to come back after a pause. */
const AFTER_PAUSE_MS = MINUTE_MS;
const MIN_SERVED_SHARE = 0.1;

/** Lets clients want calls of petql's line against an upstream of the kind, on virtual time. */
export async function walk(kind: Kind, seed: number, options: WalkOptions): Promise<Walk> {
  return walkUpstream(drawTraits(kind, seed, { ...options, startMs: START_MS }), seed, options);
}

export async function walkUpstream(traits: UpstreamTraits, seed: number, options: WalkOptions): Promise<Walk> {
  using time = await startVirtualTime(START_MS);
  const { random } = Math;
  Math.random = createRandom(seed + 3);
  try {
    const walker = new Walker(traits, seed, START_MS + options.hours * HOUR_MS, options);
    let isOver = false;
    const walking = walker.run().finally(() => (isOver = true));
    await Promise.all([walking, time.run(() => isOver)]);
    return walker.result();
  } finally {
    Math.random = random;
  }
}

class Walker {
  readonly #traits: UpstreamTraits;
  readonly #seed: number;
  readonly #endMs: number;
  readonly #options: WalkOptions;
  readonly #upstream: OddUpstream;
  readonly #known: KnownLimits;
  readonly #random: () => number;
  readonly #wanted: readonly WantedCall[];
  #line: PetqlLine;
  /** Calls that a client waits for, or will come back for. */
  #waiting = 0;
  #served = 0;
  readonly #refusals: { readonly sentAtMs: number; readonly atMs: number }[] = [];
  readonly #pauses: Span[] = [];
  #pausedUntilMs = 0;
  /** Since when calls were wanted and possible; what was served and wanted since. */
  #open: { fromMs: number; served: number; wanted: number } | undefined;
  #silentMs = 0;

  constructor(traits: UpstreamTraits, seed: number, endMs: number, options: WalkOptions) {
    this.#traits = traits;
    this.#seed = seed;
    this.#endMs = endMs;
    this.#options = options;
    this.#upstream = new OddUpstream(traits, seed, START_MS);
    this.#known = new KnownLimits(traits, this.#upstream);
    this.#random = createRandom(seed + 2);
    this.#wanted = wantedCalls(traits.demand, { fromMs: START_MS, untilMs: endMs }, this.#random);
    this.#line = this.#start();
  }

  async run(): Promise<void> {
    const { demand, restartsMs } = this.#traits;
    for (const atMs of restartsMs) setTimeout(() => this.#restart(), atMs - START_MS);
    const looking = setInterval(() => this.#look(), LOOKS_EVERY_MS);
    if (demand.kind === 'always') {
      await Promise.all(Array.from({ length: demand.clients }, () => this.#wantAlways()));
    } else await this.#wantInTurn();
    clearInterval(looking);
    await this.#line.stop();
  }

  result(): Walk {
    const possible = servedByOracle(this.#traits, {
      seed: this.#seed,
      startMs: START_MS,
      endMs: this.#endMs,
      wanted: this.#traits.demand.kind === 'always' ? undefined : this.#wanted,
      pauses: this.#pauses,
    });
    return {
      about: describeTraits(this.#traits),
      served: this.#served,
      possible,
      refused: this.#refusals.length,
      ...this.#countIncidents(),
      silentMs: this.#silentMs,
    };
  }

  #start(): PetqlLine {
    const { aheadMs, isConfigured, plan } = this.#traits;
    const clock = { now: () => Date.now() + aheadMs, elapsed: () => Date.now() - START_MS };
    const assumed = isConfigured ? { ...plan, known: true } : { ...PLANS.free, known: false };
    return new PetqlLine(assumed, clock, () => this.#send(), this.#options.log);
  }

  #restart(): void {
    const before = this.#line;
    this.#line = this.#start();
    void before.stop();
  }

  async #wantAlways(): Promise<void> {
    while (Date.now() < this.#endMs) {
      this.#waiting += 1;
      const ended = await this.#line.write(MAX_WAIT_MS);
      if ('retryAfterMs' in ended) await sleep(Math.min(MAX_REST_MS, ended.retryAfterMs, this.#endMs - Date.now()));
      else if (ended.status !== 200) await sleep(SECOND_MS);
      this.#waiting -= 1;
    }
  }

  async #wantInTurn(): Promise<void> {
    const calls: Promise<void>[] = [];
    for (const wanted of this.#wanted) {
      if (wanted.fromMs > Date.now()) await sleep(wanted.fromMs - Date.now());
      calls.push(this.#want(wanted));
    }
    await Promise.all(calls);
  }

  async #want({ untilMs }: WantedCall): Promise<void> {
    this.#waiting += 1;
    while (Date.now() < untilMs) {
      const ended = await this.#line.write(Math.min(MAX_WAIT_MS, untilMs - Date.now()));
      if ('status' in ended && ended.status === 200) break;
      const restMs = 'retryAfterMs' in ended ? ended.retryAfterMs : SECOND_MS;
      await sleep(Math.min(restMs, untilMs - Date.now()));
    }
    this.#waiting -= 1;
  }

  async #send(): Promise<LineAnswer> {
    const [minMs, maxMs] = this.#traits.latencyMs;
    const sentAtMs = Date.now();
    await sleep(between(this.#random, minMs, maxMs) / 2);
    const response = this.#upstream.arrive(Date.now());
    await sleep(between(this.#random, minMs, maxMs) / 2);
    this.#upstream.leave();
    this.#record(response, sentAtMs);
    return answerOf(response);
  }

  #record(response: UpstreamResponse, sentAtMs: number): void {
    const nowMs = Date.now();
    this.#options.onResponse?.({ sentAtMs, nowMs, response });
    this.#known.learn(response, nowMs);
    if (response.status === 200) {
      this.#served += 1;
      if (this.#open) this.#open.served += 1;
    }
    if (response.status !== 429) return;
    this.#refusals.push({ sentAtMs, atMs: nowMs });
    const { retryAfterMs = 0 } = response.headers;
    if (retryAfterMs === 0) return;
    const untilMs = nowMs + retryAfterMs;
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, untilMs + AFTER_PAUSE_MS);
    this.#pauses.push({ fromMs: nowMs, untilMs });
  }

  /** Looks whether calls are wanted and possible, and how few are served. */
  #look(): void {
    const nowMs = Date.now();
    const { day } = this.#upstream.left(nowMs);
    const isPossible =
      nowMs >= this.#pausedUntilMs &&
      this.#upstream.isOpen(nowMs) &&
      day >= this.#upstream.limit('day', nowMs) / 10 &&
      this.#known.allows(nowMs, 0.9);
    if (!isPossible || this.#waiting === 0) {
      this.#open = undefined;
      return;
    }
    this.#open ??= { fromMs: nowMs, served: 0, wanted: 0 };
    this.#open.wanted += Math.min(this.#waiting, (this.#upstream.limit('minute', nowMs) * LOOKS_EVERY_MS) / MINUTE_MS);
    if (this.#open.served >= MIN_SERVED_SHARE * this.#open.wanted) this.#open = { fromMs: nowMs, served: 0, wanted: 0 };
    this.#silentMs = Math.max(this.#silentMs, nowMs - this.#open.fromMs);
  }

  #countIncidents(): Pick<Walk, 'incidents' | 'late'> {
    const incidents = Array.from({ length: Math.ceil((this.#endMs - START_MS) / DAY_MS) }, () => 0);
    let [firstAtMs, lastAtMs, lateInThis, late] = [-Infinity, -Infinity, 0, 0];
    for (const { atMs, sentAtMs } of this.#refusals) {
      if (atMs > lastAtMs + INCIDENT_MS) {
        [firstAtMs, lateInThis] = [atMs, 0];
        const day = Math.floor((atMs - START_MS) / DAY_MS);
        incidents[day] = (incidents[day] ?? 0) + 1;
      } else if (sentAtMs > firstAtMs) lateInThis += 1;
      late = Math.max(late, lateInThis);
      lastAtMs = atMs;
    }
    return { incidents, late };
  }
}

function answerOf({ status, headers, isForeign }: UpstreamResponse): LineAnswer {
  const own = isForeign ? { ...headers, limit: undefined, remaining: undefined, reset: undefined } : headers;
  const basic = { sent: true, isOwn: !isForeign, rateLimit: own, status };
  if (status === 200) return { ...basic, meaning: 'accepted', evidence: 'works', failure: undefined };
  if (status === 429) return { ...basic, meaning: 'rate-limited', evidence: 'none', failure: {} };
  return { ...basic, meaning: 'failed', evidence: 'fails', failure: {} };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
