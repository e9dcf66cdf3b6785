import { lose, newAccount, pauseKey, refund, succeed, take } from '../../src/quota/account/account.ts';
import type { Permit } from '../../src/quota/account/format.ts';
import type { AccountRules } from '../../src/quota/account/limits.ts';
import { headerLimits } from '../../src/quota/account/header-limits.ts';
import type { AssumedPlan } from '../../src/common/plan.ts';
import { createStrictPlan } from '../support/pet-api/strict-plan.ts';
import type { StrictPlan, StrictPlanOptions } from '../support/pet-api/strict-plan.ts';

/** One key's account against a strict upstream, on virtual time: an agenda of moments instead of timers. */
export interface SimulationOptions {
  readonly upstream: StrictPlanOptions;
  readonly plan: AssumedPlan;
  /** The part of each window that own calls may use, in percent. Default 100. */
  readonly planShare?: number;
  readonly startMs: number;
  readonly lengthMs: number;
  /** How far the upstream's clock is ahead of ours. */
  readonly aheadMs?: number;
  readonly replicas?: number;
  /** Calls at a time, per replica. */
  readonly concurrency?: number;
  readonly random: () => number;
  readonly minLatencyMs: number;
  readonly maxLatencyMs: number;
  /** The share of calls that vanish, before or after the upstream has counted them. */
  readonly lost?: number;
  /** The share of permits that are not used. */
  readonly unused?: number;
  /** Whether calls are wanted at a moment. Default: always. */
  readonly isWanted?: (nowMs: number) => boolean;
}

const TIMEOUT_MS = 5_000;

/** Returns the upstream's plan, with every call that arrived. */
export function simulate(options: SimulationOptions): StrictPlan {
  const { random, startMs, aheadMs = 0, replicas = 1, concurrency = 50, lost = 0, unused = 0 } = options;
  const { isWanted = () => true, minLatencyMs, maxLatencyMs } = options;
  const endMs = startMs + options.lengthMs;
  const plan = createStrictPlan(options.upstream);
  const account = newAccount('e');
  const rules: AccountRules = {
    plan: options.plan,
    startedAtMs: startMs,
    leaseMs: TIMEOUT_MS + 60_000,
    probeMs: TIMEOUT_MS,
    planShare: options.planShare ?? 100,
  };
  const agenda = createAgenda();
  for (let replica = 0; replica < replicas; replica += 1) startReplica();
  for (let next = agenda.next(); next && next.atMs < endMs; next = agenda.next()) next.run(next.atMs);
  return plan;

  function startReplica(): void {
    let running = 0;
    let wakeMs = Infinity;
    const advance = (nowMs: number) => {
      if (!isWanted(nowMs)) return wakeAt(nowMs + 1_000);
      const { permits, wait } = take(account, concurrency - running, { nowMs, rules });
      for (const permit of permits) {
        if (random() >= unused) send(permit, nowMs);
        else {
          refund(account, permit);
          // Another call takes its place.
          wakeAt(nowMs + 10);
        }
      }
      if (wait) wakeAt(nowMs + (wait.by === 'probe' ? 20 : Math.max(1, wait.waitMs)));
      else if (running < concurrency) wakeAt(nowMs + 10);
    };
    const wakeAt = (atMs: number) => {
      if (atMs >= wakeMs) return;
      wakeMs = atMs;
      agenda.add(atMs, (nowMs) => {
        if (wakeMs !== atMs) return;
        wakeMs = Infinity;
        advance(nowMs);
      });
    };
    const send = (permit: Permit, nowMs: number) => {
      running += 1;
      const way = () => minLatencyMs + Math.floor(random() * (maxLatencyMs - minLatencyMs) * 0.5);
      const vanishes = random() < lost;
      const arrives = !vanishes || random() < 0.5;
      const arriveMs = nowMs + way();
      if (arrives) {
        agenda.add(arriveMs, (atMs) => {
          const { status, headers } = plan.arrive(atMs + aheadMs);
          if (vanishes) return;
          agenda.add(atMs + way(), (answeredMs) =>
            answered(permit, status, { headers, tookMs: answeredMs - nowMs, answeredMs }),
          );
        });
      }
      if (vanishes) {
        agenda.add(nowMs + TIMEOUT_MS, (lostMs) => {
          lose(account, permit, { rules, nowMs: lostMs });
          running -= 1;
          advance(lostMs);
        });
      }
    };
    const answered = (
      permit: Permit,
      status: number,
      {
        headers,
        tookMs,
        answeredMs,
      }: { headers: Parameters<typeof headerLimits>[0]; tookMs: number; answeredMs: number },
    ) => {
      running -= 1;
      const told = headerLimits(headers, answeredMs);
      if (status === 200) succeed(account, permit, { headers: told, tookMs }, { nowMs: answeredMs, rules });
      else {
        const retryAfterMs = headers.retryAfterMs ?? 0;
        const mayBeBanned = status === 403 && permit.isProbe;
        pauseKey(account, permit, { headers: told, tookMs, retryAfterMs, mayBeBanned }, { nowMs: answeredMs, rules });
      }
      wakeMs = Infinity;
      advance(answeredMs);
    };
    agenda.add(startMs + Math.floor(random() * 50), advance);
  }
}

/** What happens when: the earliest first, and at one moment in the order in which it was added. */
function createAgenda() {
  interface Entry {
    readonly atMs: number;
    readonly run: (nowMs: number) => void;
  }
  const entries: Entry[] = [];
  return {
    add(atMs: number, run: (nowMs: number) => void) {
      let [low, high] = [0, entries.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        // The last entry is the next one.
        if ((entries[middle] as Entry).atMs > atMs) low = middle + 1;
        else high = middle;
      }
      entries.splice(low, 0, { atMs, run });
    },
    next: () => entries.pop(),
  };
}
