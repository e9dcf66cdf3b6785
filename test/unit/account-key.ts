import { PLANS } from '../../src/common/plan.ts';
import type { AssumedPlan } from '../../src/common/plan.ts';
import { newAccount, pauseKey, succeed, take } from '../../src/quota/account/account.ts';
import type { Permit } from '../../src/quota/account/format.ts';
import type { HeaderLimits } from '../../src/quota/account/header-limits.ts';

/** At the beginning of a slot of time, and not near an hour. */
const START_MS = Date.UTC(2026, 10, 21, 9, 41, 7);
const TOOK_MS = 10;

interface Told {
  readonly limit: number;
  /** Calls of the window that the upstream has counted. */
  readonly used: number;
  readonly resetInMs?: number;
}

interface KeyOptions {
  /** Default: Free, configured. */
  readonly plan?: AssumedPlan;
  /** Default: true. */
  readonly isTrusted?: boolean;
  /** The part of the plan for petql's own calls. Default: all. */
  readonly planShare?: number;
}

/** The account of one key. Times are milliseconds since its start; responses come at once. */
export function createKey({
  plan = { ...PLANS.free, known: true },
  isTrusted = true,
  planShare = 100,
}: KeyOptions = {}) {
  const account = newAccount('e', isTrusted);
  const rules = { plan, planShare, startedAtMs: 0, leaseMs: 65_000, probeMs: 5_000 };
  const at = (ms: number) => ({ nowMs: START_MS + ms, rules });
  const responseOf = (ms: number, told?: Told) => ({
    headers: told && headersOf(START_MS + ms, told),
    tookMs: TOOK_MS,
  });
  const key = { take: takeAt, call, callAll, refuse, succeed: succeedAt };
  return key;

  /** Takes up to so many permits. */
  function takeAt(count: number, ms: number): readonly Permit[] {
    return take(account, count, at(ms)).permits;
  }

  function succeedAt(permit: Permit, ms: number, told?: Told): void {
    succeed(account, permit, responseOf(ms, told), at(ms));
  }

  /** Makes up to so many calls at once, which succeed, and returns how many; the headers are the last one's. */
  function call(count: number, ms: number, told?: Told): number {
    const permits = takeAt(count, ms);
    for (const [index, permit] of permits.entries()) {
      succeedAt(permit, ms, index === permits.length - 1 ? told : undefined);
    }
    return permits.length;
  }

  /** Makes up to so many calls, each round as soon as the one before it has proved more, and returns how many a round. */
  function callAll(max: number, ms: number): readonly number[] {
    const rounds: number[] = [];
    for (let left = max; left > 0; left -= rounds.at(-1) ?? 0) {
      const count = call(left, ms);
      if (count === 0) break;
      rounds.push(count);
    }
    return rounds;
  }

  /** Responds with a 429. */
  function refuse(permit: Permit | undefined, ms: number, retryAfterMs: number, told?: Told): void {
    if (!permit) throw new Error('expected a permit');
    pauseKey(account, permit, { ...responseOf(ms, told), retryAfterMs, mayBeBanned: false }, at(ms));
  }
}

function headersOf(nowMs: number, { limit, used, resetInMs }: Told): HeaderLimits {
  const reset = resetInMs === undefined ? undefined : { inMs: resetInMs, id: Math.round((nowMs + resetInMs) / 1_000) };
  return { limit, remaining: limit - used, used, reset };
}

export const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
