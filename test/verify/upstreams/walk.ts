import type { CallAnswer } from '../../../src/common/call-answer.ts';
import { PLANS } from '../../../src/common/plan.ts';
import { newAccount, take } from '../../../src/quota/account/account.ts';
import { WindowAt } from '../../../src/quota/account/window.ts';
import { applyEnd, callEndOf } from '../../../src/quota/account/call-end.ts';
import type { Account, Permit } from '../../../src/quota/account/format.ts';
import type { AccountRules } from '../../../src/quota/account/limits.ts';
import { Places } from '../../../src/line/places.ts';
import { between, createRandom } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import { RandomUpstream, describeTraits, drawTraits } from './random-upstream.ts';
import type { UpstreamResponse, UpstreamTraits } from './random-upstream.ts';

/** What happened in the hours of one upstream. */
export interface Walk {
  readonly about: string;
  /** The longest time without a call while calls were wanted and a tenth of the day was left. */
  readonly deadMs: number;
  /** 429s: calls that were sent before the first of them was answered are one. At most in an hour, in a day, and in all. */
  readonly refusals: { readonly hour: number; readonly day: number; readonly all: number };
  /** At most in ten minutes, each response. */
  readonly refusedCalls: number;
  /** Whether the upstream is exact and petql alone, or has a limit that it does not tell. */
  readonly kind: 'exact' | 'hidden' | 'odd';
  /** The share of the allowed calls that were made. */
  readonly usedShare: number;
}

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
/** How often a client asks that was told to wait. */
const ASKS_EVERY_MS = 20_000;

/** Lets clients want more than the plan allows, always or in bursts, for so many hours. Returns undefined for another kind. */
export function walk(seed: number, hours: number, kind?: Walk['kind']): Walk | undefined {
  const traits = drawTraits(seed, START_MS);
  if (kind !== undefined && kindOf(traits) !== kind) return undefined;
  return new Walker(traits, seed).run(START_MS + hours * HOUR_MS);
}

class Walker {
  readonly #traits: UpstreamTraits;
  readonly #upstream: RandomUpstream;
  readonly #random: Random;
  readonly #rules: AccountRules;
  readonly #agenda: { atMs: number; run: (nowMs: number) => void }[] = [];
  #account: Account = newAccount('e');
  #restarts: number[];
  #nowMs = START_MS;
  readonly #places = new Places({ now: () => this.#nowMs, elapsed: () => this.#nowMs });
  #wakeAtMs = Infinity;
  /** When calls are wanted: always, or for ten minutes of each hour. */
  readonly #isSaturated: boolean;

  #sent = 0;
  /** Of the last day. */
  #sentAtMs: number[] = [];
  #allowedAtMs = START_MS;
  #lastSentAtMs = START_MS;
  #deadMs = 0;
  #refusals: number[] = [];
  #refusedCalls: number[] = [];
  #knownAtMs = -Infinity;

  constructor(traits: UpstreamTraits, seed: number) {
    this.#traits = traits;
    this.#upstream = new RandomUpstream(traits, seed, START_MS);
    this.#random = createRandom(seed + 2);
    this.#isSaturated = this.#random() < 0.6;
    this.#rules = { plan: { ...PLANS.free, known: false }, startedAtMs: START_MS, leaseMs: 70_000, probeMs: 10_000 };
    this.#restarts = [...traits.restartsMs];
  }

  run(endMs: number): Walk {
    this.#at(START_MS, (nowMs) => this.#look(nowMs));
    for (let atMs = START_MS; atMs < endMs; atMs += ASKS_EVERY_MS) this.#at(atMs, (nowMs) => this.#ask(nowMs));
    for (let next = this.#agenda.pop(); next && next.atMs < endMs; next = this.#agenda.pop()) {
      this.#nowMs = next.atMs;
      next.run(next.atMs);
    }
    return this.#result(endMs);
  }

  /** Clients ask again, and it shows whether the key is dead. */
  #ask(nowMs: number): void {
    if (!this.#isWanted(nowMs)) {
      this.#allowedAtMs = nowMs;
      return;
    }
    const { minute, day } = this.#upstream.left(nowMs);
    const { perDay } =
      this.#traits.change && nowMs >= this.#traits.change.atMs ? this.#traits.change.plan : this.#traits.plan;
    this.#sentAtMs = this.#sentAtMs.filter((atMs) => atMs > nowMs - 24 * HOUR_MS - 900_000);
    // Own calls of a whole day are silence enough, unless the upstream is exact: its headers tell when a day ends.
    const room = Math.min(this.#traits.plan.perDay, this.#traits.change?.plan.perDay ?? Infinity);
    const hasRoom = kindOf(this.#traits) === 'exact' || this.#sentAtMs.length < 0.9 * room;
    const mayCall = minute > 0 && day >= perDay / 10 && hasRoom && !this.#upstream.isDown(nowMs);
    if (!mayCall) this.#allowedAtMs = nowMs;
    this.#deadMs = Math.max(this.#deadMs, nowMs - Math.max(this.#allowedAtMs, this.#lastSentAtMs));
    this.#look(nowMs);
  }

  #isWanted(nowMs: number): boolean {
    return this.#isSaturated || nowMs % HOUR_MS < 600_000;
  }

  /** Takes permits and sends, as the line of a key does. */
  #look(nowMs: number): void {
    while (this.#restarts[0] !== undefined && nowMs >= this.#restarts[0]) {
      this.#restarts.shift();
      this.#account = newAccount(`e${this.#restarts.length}`);
    }
    if (!this.#isWanted(nowMs)) return;
    const wanted = this.#places.spare(this.#minuteLimit);
    if (wanted <= 0) return;
    const { permits, wait } = take(this.#account, wanted, { nowMs: this.#ours(nowMs), rules: this.#rules });
    for (const permit of permits) this.#send(permit, nowMs);
    const waitMs = permits.length > 0 ? 1 : Math.max(1, wait?.waitMs ?? 1);
    // Clients come back in time; a look at least each `ASKS_EVERY_MS` is theirs.
    if (waitMs < ASKS_EVERY_MS) this.#wake(nowMs + waitMs);
  }

  #wake(atMs: number): void {
    if (atMs >= this.#wakeAtMs) return;
    this.#wakeAtMs = atMs;
    this.#at(atMs, (nowMs) => {
      if (this.#wakeAtMs !== atMs) return;
      this.#wakeAtMs = Infinity;
      this.#look(nowMs);
    });
  }

  #send(permit: Permit, nowMs: number): void {
    const [minMs, maxMs] = this.#traits.latencyMs;
    const way = () => between(this.#random, minMs, maxMs) / 2;
    const free = this.#places.occupy(undefined, this.#minuteLimit);
    this.#sent += 1;
    this.#sentAtMs.push(nowMs);
    this.#lastSentAtMs = nowMs;
    this.#at(nowMs + way(), (arrivedMs) => {
      const response = this.#upstream.arrive(arrivedMs);
      this.#at(arrivedMs + way(), (answeredMs) => {
        this.#upstream.leave();
        free();
        this.#receive(permit, response, { sentAtMs: nowMs, nowMs: answeredMs });
      });
    });
  }

  #receive(permit: Permit, response: UpstreamResponse, { sentAtMs, nowMs }: { sentAtMs: number; nowMs: number }): void {
    if (response.status === 200) this.#places.recordSuccess(this.#minuteLimit);
    if (response.status === 429) this.#places.reset();
    if (response.status === 429) this.#recordRefusal(sentAtMs, nowMs);
    const oursMs = this.#ours(nowMs);
    const end = callEndOf(permit, answerOf(response), { tookMs: nowMs - sentAtMs, nowMs: oursMs, isDecisive: true });
    applyEnd(this.#account, permit, end, { nowMs: oursMs, rules: this.#rules });
    this.#wake(nowMs + (response.status === 503 ? 30_000 : 1));
  }

  get #minuteLimit(): number {
    return new WindowAt(this.#account, 'minute', { nowMs: this.#ours(this.#nowMs), rules: this.#rules }).limit;
  }

  #recordRefusal(sentAtMs: number, nowMs: number): void {
    this.#refusedCalls.push(nowMs);
    if (sentAtMs <= this.#knownAtMs) return;
    this.#knownAtMs = nowMs;
    this.#refusals.push(nowMs);
  }

  #result(endMs: number): Walk {
    const { traits } = this.#upstream;
    const hours = (endMs - START_MS) / HOUR_MS;
    const share = this.#isSaturated ? 1 : 1 / 6;
    const allowed = Math.min(traits.plan.perDay * Math.ceil(hours / 24), traits.plan.perMinute * 60 * hours * share);
    return {
      about: `${describeTraits(traits)}${this.#isSaturated ? '' : ', in bursts'}`,
      deadMs: this.#deadMs,
      refusals: {
        hour: mostWithin(this.#refusals, HOUR_MS),
        day: mostWithin(this.#refusals, 24 * HOUR_MS),
        all: this.#refusals.length,
      },
      refusedCalls: mostWithin(this.#refusedCalls, 600_000),
      kind: kindOf(traits),
      usedShare: (this.#sent - this.#refusedCalls.length) / allowed,
    };
  }

  #ours(nowMs: number): number {
    return nowMs + this.#traits.aheadMs;
  }

  #at(atMs: number, run: (nowMs: number) => void): void {
    let [low, high] = [0, this.#agenda.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#agenda[middle] as { atMs: number }).atMs > atMs) low = middle + 1;
      else high = middle;
    }
    this.#agenda.splice(low, 0, { atMs, run });
  }
}

function kindOf(traits: UpstreamTraits): Walk['kind'] {
  const { aheadMs, change, foreignEvery, hidden, lateMs, nodes, offBy, others, outages, restartsMs, sendsDate, slack } =
    traits;
  if (hidden) return 'hidden';
  const isExact = aheadMs === 0 && lateMs === 0 && nodes === 1 && offBy === 0 && slack === 0 && sendsDate;
  const isAlone = !change && !foreignEvery && !others && outages.length === 0 && restartsMs.length === 0;
  return isExact && isAlone && traits.resetAs === 'seconds' && traits.tells === 'fewer' ? 'exact' : 'odd';
}

function answerOf({ status, headers, isForeign }: UpstreamResponse): CallAnswer {
  const meaning = status === 200 ? 'accepted' : status === 429 ? 'rate-limited' : 'failed';
  const own = isForeign ? { ...headers, limit: undefined, remaining: undefined, reset: undefined } : headers;
  return { sent: true, meaning, evidence: 'none', isOwn: !isForeign, rateLimit: own };
}

/** Returns how many of the times lie within so long at most. */
function mostWithin(times: readonly number[], lengthMs: number): number {
  let most = 0;
  for (const [index, atMs] of times.entries()) {
    let first = index;
    while (first > 0 && (times[first - 1] as number) > atMs - lengthMs) first -= 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
