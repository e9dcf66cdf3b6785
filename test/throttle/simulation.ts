import type { Clock } from '../../src/clock.ts';
import type { Exchange, Grant, Report, Standing } from '../../src/throttle/ledger.ts';
import { readWindows } from '../../src/throttle/readings.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { RateLimitHeaders } from '../../src/upstream/rate-limit-headers.ts';
import { createStrictPlan } from './strict-plan.ts';
import type { Arrival, StrictPlanOptions } from './strict-plan.ts';

/** What becomes of a call on the way there and back. */
export interface Journey {
  readonly thereMs: number;
  readonly backMs: number;
  /** `unsent` never leaves; `silent` arrives and its answer is lost; `vanished` is lost with the process that sent it. */
  readonly fate: 'answered' | 'silent' | 'unsent' | 'vanished';
}

export interface SimulationOptions {
  readonly upstream: StrictPlanOptions;
  /** When the key was called with before, in milliseconds before the start, the oldest first. Default: never. */
  readonly earlierMs?: readonly number[];
  /** Milliseconds that the upstream's clock is ahead of the ledger's. */
  readonly upstreamAheadMs: number;
  /** Milliseconds that each replica's clocks are ahead of the ledger's. */
  readonly replicasAheadMs: readonly number[];
  readonly durationMs: number;
  /** How many calls a replica wants whenever it asks. */
  readonly wanted: number;
  /** How many calls a replica has under way at most. Default: any number. */
  readonly mostUnderWay?: number;
  /** The ledger that all replicas share. */
  exchange(exchange: Exchange, nowMs: number): Standing;
  journey(grant: Grant): Journey;
  /** What is added to the Date of an answer, in milliseconds. Default: nothing. */
  dateOffMs?(): number;
  /** How long after an answer or a wait a replica asks again. */
  thinkMs(): number;
  readonly timeoutMs: number;
}

export interface SimulationResult {
  readonly arrivals: readonly Arrival[];
  readonly granted: number;
  readonly returned: number;
  /** Arrivals, and calls still on their way when time was up. */
  readonly sent: number;
  /** Grants that were about to be given back when time was up. */
  readonly unsent: number;
}

const START_MS = Date.UTC(2026, 10, 21, 11, 59, 13);

/** Replicas that saturate one key's plan on virtual time. */
export function simulate(options: SimulationOptions): SimulationResult {
  const upstream = createStrictPlan(options.upstream);
  const events = createEvents();
  const { wanted, mostUnderWay = Infinity } = options;
  let granted = 0;
  let returned = 0;
  let sent = 0;
  let unsent = 0;

  for (const beforeMs of options.earlierMs ?? []) upstream.arrive(START_MS + options.upstreamAheadMs - beforeMs);
  for (const aheadMs of options.replicasAheadMs) startReplica(aheadMs);
  events.runUntil(options.durationMs);
  return { arrivals: upstream.arrivals, granted, returned, sent, unsent };

  function startReplica(aheadMs: number): void {
    const clock: Clock = {
      now: () => START_MS + events.nowMs + aheadMs,
      elapsed: () => events.nowMs + 5_000_000 + aheadMs,
    };
    const upstreamClock = createUpstreamClock(clock);
    let reports: Report[] = [];
    let known: Standing | undefined;
    let nextAskMs = -1;
    let underWay = 0;
    let answered = 0;
    askAt(0);

    function ask(): void {
      nextAskMs = -1;
      underWay -= reports.length;
      const request = { reports, wanted: Math.min(wanted, mostUnderWay - underWay) };
      const standing = options.exchange(request, START_MS + events.nowMs);
      reports = [];
      known = standing;
      granted += standing.grants.length;
      underWay += standing.grants.length;
      for (const grant of standing.grants) travel(grant);
      // Its answers say when to ask again.
      if (request.wanted === 0) return;
      const patienceMs = standing.closed === 'probing' ? 50 : standing.waitMs;
      askAt(events.nowMs + Math.max(1, Math.min(patienceMs, 60_000)) + options.thinkMs());
    }

    function askAt(atMs: number): void {
      if (nextAskMs >= 0 && nextAskMs <= atMs) return;
      nextAskMs = atMs;
      events.at(atMs, () => {
        if (nextAskMs === atMs) ask();
      });
    }

    function travel(grant: Grant): void {
      const { thereMs, backMs, fate } = options.journey(grant);
      if (fate === 'unsent') {
        unsent += 1;
        events.at(events.nowMs + 1 + thereMs, () => {
          unsent -= 1;
          returned += 1;
          report({ kind: 'returned', grant });
        });
        return;
      }
      sent += 1;
      const answeredBefore = answered;
      events.at(events.nowMs + thereMs, () => {
        const { status, headers: sentHeaders } = upstream.arrive(START_MS + events.nowMs + options.upstreamAheadMs);
        const headers = dated(sentHeaders);
        if (fate !== 'answered' || thereMs + backMs > options.timeoutMs) return;
        events.at(events.nowMs + backMs, () => {
          if (headers.dateMs !== undefined) upstreamClock.observe(headers.dateMs, thereMs + backMs);
          const readings = readWindows(
            headers,
            { ...(known as Standing), answered: answeredBefore },
            { upstreamNowMs: upstreamClock.now(), nowMs: clock.now() },
          );
          if (status === 200 && readings.length > 0) answered += 1;
          report(
            status === 200
              ? { kind: 'answered', grant, readings }
              : {
                  kind: 'refused',
                  grant,
                  readings,
                  refusal: { retryAfterMs: headers.retryAfterMs ?? 0, ban: status === 403, jitter: 0.5 },
                },
          );
        });
      });
      const lost = fate === 'silent' || (fate === 'answered' && thereMs + backMs > options.timeoutMs);
      if (lost) events.at(events.nowMs + options.timeoutMs, () => report({ kind: 'lost', grant }));
      if (fate === 'vanished') {
        events.at(events.nowMs + options.timeoutMs, () => {
          underWay -= 1;
          askAt(events.nowMs);
        });
      }
    }

    function dated(headers: RateLimitHeaders): RateLimitHeaders {
      const { dateMs } = headers;
      return dateMs === undefined ? headers : { ...headers, dateMs: dateMs + (options.dateOffMs?.() ?? 0) };
    }

    function report(what: Report): void {
      reports.push(what);
      askAt(events.nowMs + options.thinkMs());
    }
  }
}

interface Events {
  readonly nowMs: number;
  at(atMs: number, run: () => void): void;
  runUntil(endMs: number): void;
}

/** What happens when, kept in a heap; equal times in the order in which they were named. */
function createEvents(): Events {
  const heap: { atMs: number; order: number; run: () => void }[] = [];
  let nowMs = 0;
  let order = 0;
  const before = (a: number, b: number) => {
    const [x, y] = [heap[a], heap[b]];
    return x !== undefined && y !== undefined && (x.atMs < y.atMs || (x.atMs === y.atMs && x.order < y.order));
  };
  const swap = (a: number, b: number) => {
    const [x, y] = [heap[a], heap[b]];
    if (x && y) [heap[a], heap[b]] = [y, x];
  };
  return {
    get nowMs() {
      return nowMs;
    },
    at(atMs, run) {
      heap.push({ atMs: Math.max(atMs, nowMs), order: (order += 1), run });
      for (let child = heap.length - 1; child > 0;) {
        const parent = (child - 1) >> 1;
        if (!before(child, parent)) break;
        swap(child, parent);
        child = parent;
      }
    },
    runUntil(endMs) {
      for (;;) {
        const [first] = heap;
        if (!first || first.atMs > endMs) return;
        const last = heap.pop();
        if (last && heap.length > 0) heap[0] = last;
        for (let parent = 0; ;) {
          const [left, right] = [2 * parent + 1, 2 * parent + 2];
          const child = before(right, left) ? right : left;
          if (!before(child, parent)) break;
          swap(child, parent);
          parent = child;
        }
        nowMs = first.atMs;
        first.run();
      }
    },
  };
}
