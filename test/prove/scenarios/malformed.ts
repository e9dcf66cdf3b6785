import type { Clock } from '../../../src/clock.ts';
import { exchange, newLedgerState } from '../../../src/throttle/ledger-state.ts';
import type { LedgerRules } from '../../../src/throttle/ledger-state.ts';
import type { Report, Standing } from '../../../src/throttle/ledger.ts';
import { readWindows } from '../../../src/throttle/readings.ts';
import { createUpstreamClock } from '../../../src/throttle/upstream-clock.ts';
import { readRateLimitHeaders } from '../../../src/upstream/rate-limit-headers.ts';
import type { ResponseHeaders } from '../../../src/upstream/transport.ts';
import { createStrictPlan } from '../../throttle/strict-plan.ts';
import type { Arrival } from '../history.ts';
import { between } from '../random.ts';
import type { Random } from '../random.ts';
import type { Findings, Scenario } from '../scenario.ts';
import { judge } from '../trial.ts';

const RESPONSES = 300_000;
const KEYS = 60;
const START_MS = Date.UTC(2026, 10, 21, 11, 59, 13);

/** Headers that no reader can make sense of, on virtual time. */
export const malformed: Scenario = {
  name: 'malformed',
  goal: `${RESPONSES.toLocaleString('en')} malformed headers: nothing thrown, nothing overspent`,
  plan: 'various',
  windows: 'sliding',
  replicas: 1,
  // It holds up whatever else runs in this process.
  alone: true,
  run: ({ random }) => Promise.resolve(misread(random)),
};

function misread(random: Random): Findings {
  const findings = Array.from({ length: KEYS }, (_, index) => misreadOne(random, `key ${index}`));
  return {
    arrivals: findings.reduce((sum, { arrivals }) => sum + arrivals, 0),
    refusals: findings.reduce((sum, { refusals }) => sum + refusals, 0),
    problems: findings.flatMap(({ problems }) => problems),
  };
}

/** A caller that wants all it can get, of an upstream that counts well and tells badly. */
function misreadOne(random: Random, key: string): Findings {
  const plan = {
    perMinute: between(random, 5, 400),
    perDay: 1_000_000,
    windows: random() < 0.5 ? ('fixed' as const) : ('sliding' as const),
  };
  const upstream = createStrictPlan({ ...plan, tells: 'minute' });
  const rules: LedgerRules = { plan: { ...plan, known: true }, probeMs: 5_000 };
  const state = newLedgerState(key, rules);
  let elapsedMs = 0;
  const clock: Clock = { now: () => START_MS + elapsedMs, elapsed: () => elapsedMs };
  const upstreamClock = createUpstreamClock(clock);
  const arrivals: Arrival[] = [];
  let reports: Report[] = [];
  while (arrivals.length < RESPONSES / KEYS) {
    const standing: Standing = exchange(state, { reports, wanted: between(random, 1, 50) }, rules, clock.now());
    reports = standing.grants.map((grant): Report => {
      const { atMs, status, headers } = upstream.arrive(clock.now());
      const { retryAfterMs } = headers;
      arrivals.push({ key, atMs, answeredAtMs: atMs, method: 'GET', name: undefined, status, retryAfterMs });
      const read = readRateLimitHeaders(disfigured(random, written(headers)), clock.now());
      if (read.dateMs !== undefined) upstreamClock.observe(read.dateMs, 10);
      const times = { upstreamNowMs: upstreamClock.now(), nowMs: clock.now() };
      const readings = readWindows(read, standing, times);
      if (status === 200) return { kind: 'answered', grant, readings };
      return {
        kind: 'refused',
        grant,
        readings,
        refusal: { retryAfterMs: read.retryAfterMs ?? 0, ban: false, jitter: 0 },
      };
    });
    elapsedMs += between(random, 1, reports.length > 0 ? 300 : 5_000);
  }
  return judge({ arrivals, plan });
}

function written({
  limit,
  remaining,
  reset,
  retryAfterMs,
  dateMs,
}: ReturnType<typeof readRateLimitHeaders>): Record<string, string> {
  return {
    ...(retryAfterMs === undefined ? {} : { 'retry-after': String(retryAfterMs / 1000) }),
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(reset),
    date: new Date(dateMs ?? 0).toUTCString(),
  };
}

/** Each header is left as it is, left out, or spoilt; what is spoilt is never a lie that a reader could believe. */
function disfigured(random: Random, headers: Record<string, string>): ResponseHeaders {
  const spoilt: Record<string, string | string[] | undefined> = { ...headers };
  for (const [name, value] of Object.entries(headers)) {
    const luck = random();
    if (luck < 0.25) continue;
    if (luck < 0.4) delete spoilt[name];
    else spoilt[name] = spoil(random, name, value);
  }
  return spoilt;
}

function spoil(random: Random, name: string, value: string): string | string[] {
  const general = [
    '',
    ' ',
    'null',
    'NaN',
    'Infinity',
    '-1',
    `-${value}`,
    `${value}.5`,
    `${value}e9`,
    `0x${value}`,
    `${value}, ${value}0`,
    [value, `${value}0`],
    [],
    '９９', // Digits to a human, not to a header.
    '99999999999999999999',
    `"${value}"`,
    'unlimited',
    String.fromCodePoint(between(random, 0x3a, 0x2fff)).repeat(between(random, 1, 40)),
  ];
  const own: Record<string, readonly string[]> = {
    // More than any window holds, by far.
    'x-ratelimit-remaining': ['999999999', '999999999999999', '1000000000'],
    // Of no plan, of the distant past, of the distant future. A small reset would be one in seconds from now.
    'x-ratelimit-limit': ['0', '000'],
    'x-ratelimit-reset': ['999999999999999', '1000000000', '1234567890'],
    date: ['Thu, 01 Jan 1970 00:00:00 GMT', 'Fri, 31 Dec 9999 23:59:59 GMT', 'Sat, 32 Foo 2026 12:00:00', '12'],
  };
  const choices = [...general, ...(own[name] ?? [])];
  return choices[between(random, 0, choices.length - 1)] ?? '';
}
