import { createFaults } from './faults.ts';
import type { FaultKind, Faults, NotedFault } from './faults.ts';
import type { LoggedCall } from './pet-api/pet-api.ts';
import { endOfPause, isBesideProbe, isInPause, isProbing, isSameIncident } from './plan-rules.ts';
import type { Pause, TimedCall } from './plan-rules.ts';
import { Tally } from './tally.ts';
import type { Row } from './tally.ts';

export interface PlanRules {
  /** How often calls may go over the plan. Those that were sent before the first 429 was back are one. Default 0. */
  readonly incidents?: number;
  /** For how long after a 429 calls may still arrive that were on their way: in real time, half a second. Default 0. */
  readonly inFlightMs?: number;
  /** When a call without a response is given up. Default 5 s, as petql's own. */
  readonly upstreamTimeoutMs?: number;
  readonly faults?: Faults;
  /** From the pet API's clock to that of the faults. Default: they are the same. */
  readonly faultTime?: (atMs: number) => number;
}

const DAY_MS = 86_400_000;
/** A Redis that was harmed may cost each key one 429, for as long as a window lasts. */
const IN_DOUBT_MS = 75_000;
/** What loses the responses of calls. */
const LOSES_RESPONSES: readonly FaultKind[] = ['upstream', 'frozen', 'killed'];
/** What lets replicas probe each for itself. */
const DIVIDES_REPLICAS: readonly FaultKind[] = [...LOSES_RESPONSES, 'emptied', 'redis', 'stalled', 'stopping'];
/** How long a response may be on its way. */
const ON_ITS_WAY_MS = 2_000;

/** No call goes over the plan, as the upstream counts, and after a 429 nobody calls before its Retry-After is over. */
export function checkPlan(log: readonly LoggedCall[], rules: PlanRules = {}): Row[] {
  const { inFlightMs = 0, upstreamTimeoutMs = 5_000, faults = createFaults(), faultTime = (atMs) => atMs } = rules;
  let { incidents = 0 } = rules;
  const kept = new Tally('no call is over the plan (429)');
  const paused = new Tally('after a 429 nobody calls');
  const probed = new Tally('one probe at a time follows a 429');
  const banned = new Tally('no key is banned (403)');
  const onItsWay = ({ atMs }: LoggedCall) => ({ fromMs: faultTime(atMs), untilMs: faultTime(atMs) + ON_ITS_WAY_MS });
  const redisBefore = (call: LoggedCall) =>
    faults.touching(['redis'], { fromMs: faultTime(call.atMs) - IN_DOUBT_MS, untilMs: faultTime(call.atMs) });
  const ownCalls = Map.groupBy(log, ({ key }) => key);
  for (const calls of ownCalls.values()) {
    seeOverruns(calls);
    for (const [index, call] of calls.entries()) {
      const pause = pauseOf(call);
      if (!pause) continue;
      const later = calls.slice(index + 1);
      seePause(pause, later);
      seeProbes(pause, later);
    }
  }
  kept.measured = [...ownCalls].map(([key, calls]) => `${key} ${calls.length}`).join(', ');
  return [kept, paused, probed, banned];

  function seeOverruns(calls: readonly LoggedCall[]): void {
    /** Each harm explains one incident of a key. */
    const used = new Set<NotedFault>();
    let knownAtMs = -Infinity;
    for (const call of calls) {
      banned.look(call.isBanned ? `${textOf(call)} met a ban` : undefined);
      const problem = call.over && `${textOf(call)} went over the plan's ${call.over}`;
      const isKnown = isSameIncident(call.sentAtMs, knownAtMs);
      if (!problem || isKnown) {
        kept.look(problem, isKnown);
        continue;
      }
      const harm = redisBefore(call).find((fault) => !used.has(fault));
      if (harm) used.add(harm);
      else incidents -= 1;
      const isExplained = harm !== undefined || incidents >= 0;
      kept.look(problem, isExplained);
      // Where the response is lost, the next call that finds out is sent without having heard of it.
      const deaf = faults.touching(LOSES_RESPONSES, onItsWay(call));
      const deafUntilMs = Math.max(0, ...deaf.map(({ untilMs }) => untilMs + ON_ITS_WAY_MS - faultTime(call.atMs)));
      if (isExplained) knownAtMs = Math.max(call.atMs + deafUntilMs, (call.answeredAtMs ?? Infinity) + 2 * inFlightMs);
    }
  }

  /** Returns what a 429 demands; undefined where a fault excuses those who go on. */
  function pauseOf(refused: LoggedCall): Pause | undefined {
    const { status, answeredAtMs, atMs, retryAfterMs } = refused;
    if (status !== 429 || answeredAtMs === undefined || retryAfterMs === undefined) return undefined;
    // Its response may have been lost, or each replica finds out for itself.
    if (faults.touching(LOSES_RESPONSES, onItsWay(refused)).length > 0 || redisBefore(refused).length > 0) {
      return undefined;
    }
    // No window is longer than a day, so a longer Retry-After is none.
    return { knownAtMs: answeredAtMs + inFlightMs, untilMs: atMs + Math.min(retryAfterMs, DAY_MS) };
  }

  function seePause(pause: Pause, later: readonly LoggedCall[]): void {
    for (const call of later) {
      if (call.atMs >= pause.untilMs) return;
      const isEarly = isInPause(pause, call.sentAtMs);
      paused.look(isEarly ? `${textOf(call)} was sent in the pause until ${time(pause.untilMs)}` : undefined);
    }
  }

  function seeProbes(pause: Pause, later: readonly LoggedCall[]): void {
    const followers: TimedCall[] = [];
    for (const call of later) {
      if (call.sentAtMs < endOfPause(pause)) continue;
      if (!isProbing(call.sentAtMs, followers)) return;

      const isBeside = isBesideProbe(call.sentAtMs, followers);
      const problem = `${textOf(call)} was sent beside the probe of the pause until ${time(pause.untilMs)}`;
      const since = { fromMs: faultTime(pause.knownAtMs), untilMs: faultTime(call.atMs) };
      probed.look(isBeside ? problem : undefined, faults.touching(DIVIDES_REPLICAS, since).length > 0);
      followers.push(timedCall(call));
    }
  }

  function timedCall({ answeredAtMs = Infinity, sentAtMs, status }: LoggedCall): TimedCall {
    const isServed = status < 500 && ![401, 403, 429].includes(status);
    return { sentAtMs, endedAtMs: Math.min(answeredAtMs, sentAtMs + upstreamTimeoutMs), isServed };
  }
}

/**
 * How much of a limit was used by clients that always wanted more: how long as many whole windows of calls may take, by how long
 * they took. A window that is still open at the end counts neither way.
 *
 * @param limit calls in a window of `windowMs`, a minute by default.
 */
export function usedShare(log: readonly LoggedCall[], limit: number, windowMs = 60_000): number {
  const timesMs = log.filter(({ status }) => status !== 429).map(({ atMs }) => atMs);
  const windows = Math.floor((timesMs.length - 1) / limit);
  const tookMs = (timesMs[windows * limit] ?? NaN) - (timesMs[0] ?? NaN);
  return (windows * windowMs) / tookMs;
}

function textOf({ method, key, atMs }: LoggedCall): string {
  return `the ${method} of ${key} at ${time(atMs)}`;
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}
