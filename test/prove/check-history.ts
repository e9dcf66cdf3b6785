import type { Arrival, ClientRequest, History, Tokens } from './history.ts';

export interface HistoryRules {
  readonly windows: 'fixed' | 'sliding';
  readonly perMinute: number;
  readonly perDay: number;
  /**
   * How long after the answer of a 429 a call may still arrive, since it was on its way or granted before anybody could
   * know; in milliseconds. Default 500: half a second is one exchange with a Redis that is slow.
   */
  readonly inFlightMs?: number;
}

const LENGTH_MS = { minute: 60_000, day: 86_400_000 } as const;

/**
 * Goes over what happened, knowing nothing of how petql works.
 *
 * @returns what is wrong, a sentence each; nothing when all is well.
 */
export function checkHistory({ arrivals, requests, tokens }: History, rules: HistoryRules): string[] {
  const byKey = Map.groupBy(arrivals, ({ key }) => key);
  return [
    ...[...byKey].flatMap(([key, own]) => [
      ...overrun(key, own, rules, 'minute'),
      ...overrun(key, own, rules, 'day'),
      ...calledWhileClosed(key, own, rules.inFlightMs ?? 500),
    ]),
    ...settledWrongly(requests, arrivals),
    ...(tokens ? lostTokens(tokens) : []),
  ];
}

/** The first window of this length that held more arrivals than the plan allows. */
function overrun(key: string, arrivals: readonly Arrival[], rules: HistoryRules, name: 'day' | 'minute'): string[] {
  const lengthMs = LENGTH_MS[name];
  const limit = name === 'minute' ? rules.perMinute : rules.perDay;
  const times = arrivals.map(({ atMs }) => atMs).toSorted((one, other) => one - other);
  let first = 0;
  for (const [index, atMs] of times.entries()) {
    // Fixed windows begin with the clock's minutes and days; a sliding one holds what came less than its length ago.
    const outside = (earlierMs: number) =>
      rules.windows === 'fixed'
        ? Math.floor(earlierMs / lengthMs) < Math.floor(atMs / lengthMs)
        : earlierMs <= atMs - lengthMs;
    while (outside(times[first] ?? atMs)) first += 1;
    const count = index - first + 1;
    if (count > limit) {
      return [
        `${key}: the ${name} up to ${new Date(atMs).toISOString()} holds ${count} arrivals, ${limit} are allowed`,
      ];
    }
  }
  return [];
}

/** Arrivals between a 429 and the end of its Retry-After, but for what was in flight. */
function calledWhileClosed(key: string, arrivals: readonly Arrival[], inFlightMs: number): string[] {
  const closed = arrivals.flatMap(({ status, answeredAtMs, retryAfterMs = 0 }) =>
    status === 429 ? [{ fromMs: answeredAtMs + inFlightMs, untilMs: answeredAtMs + retryAfterMs }] : [],
  );
  if (closed.length === 0) return [];
  const early = arrivals.filter(({ atMs }) => closed.some(({ fromMs, untilMs }) => atMs > fromMs && atMs < untilMs));
  return early.length === 0 ? [] : [`${key}: ${early.length} calls arrived before a 429's Retry-After was over`];
}

/** Every request settles once, and the upstream has done what its client was told, once. */
function settledWrongly(requests: readonly ClientRequest[], arrivals: readonly Arrival[]): string[] {
  const added = new Map<string, number>();
  for (const { name, status } of arrivals) {
    if (name !== undefined && status === 201) added.set(name, (added.get(name) ?? 0) + 1);
  }
  const problems: string[] = [];
  for (const { name, settlements } of requests) {
    const [settlement] = settlements;
    const times = added.get(name) ?? 0;
    added.delete(name);
    if (settlements.length !== 1) problems.push(`${name}: settled ${settlements.length} times`);
    else if (times > 1) problems.push(`${name}: added ${times} times`);
    else if (settlement?.outcome === 'created' && times === 0) problems.push(`${name}: created, but never added`);
    else if (settlement?.outcome === 'refused' && times > 0) problems.push(`${name}: refused, but added`);
    else if (settlement?.outcome === 'failed') problems.push(`${name}: failed with ${settlement.code}`);
  }
  for (const name of added.keys()) problems.push(`${name}: added, but nobody asked for it`);
  return problems;
}

function lostTokens({ granted, sent, returned, expired }: Tokens): string[] {
  if (granted === sent + returned + expired) return [];
  return [`${granted} tokens granted, but ${sent} sent + ${returned} returned + ${expired} expired`];
}
