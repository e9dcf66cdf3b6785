import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { steadyTime, systemClock } from '../../src/clock.ts';
import type { AssumedPlan } from '../../src/plan.ts';
import type { Exchange, Grant, Ledger, Standing } from '../../src/throttle/ledger.ts';
import { createMemoryLedger } from '../../src/throttle/memory-ledger.ts';
import { createThrottle } from '../../src/throttle/throttle.ts';
import type { Passage, Throttle, ThrottleOptions, Turn } from '../../src/throttle/throttle.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { UpstreamAnswer, UpstreamOutcome } from '../../src/upstream/pet-api.ts';
import type { RateLimitHeaders } from '../../src/upstream/rate-limit-headers.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { createStrictPlan } from './strict-plan.ts';
import type { StrictPlan, StrictPlanOptions } from './strict-plan.ts';

const NO_HEADERS: RateLimitHeaders = {
  limit: undefined,
  remaining: undefined,
  reset: undefined,
  retryAfterMs: undefined,
  dateMs: undefined,
};
/** Ends what would go on for ever. */
const NO_MORE = { closed: 'day', waitMs: 1_000_000 } as const;

const PLAN: StrictPlanOptions = { perMinute: 5, perDay: 1_000, windows: 'fixed', tells: 'minute' };

let upstream: StrictPlan;
let throttle: Throttle;
/** What was sent, in order. */
let sent: string[];

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 12, 0, 1) });
  sent = [];
});
afterEach(() => {
  vi.useRealTimers();
});

function start(plan: Partial<StrictPlanOptions> = {}, options: Partial<ThrottleOptions> = {}): void {
  const limits = { ...PLAN, ...plan };
  const { perMinute, perDay } = limits;
  upstream = createStrictPlan(limits);
  throttle = createThrottle({
    apiKey: 'a key',
    ledger: ledgerOf({ perMinute, perDay, known: true }),
    upstreamClock: createUpstreamClock(systemClock),
    clock: systemClock,
    ...options,
  });
}

function ledgerOf(plan: AssumedPlan): Ledger {
  return createMemoryLedger({
    rules: { plan, probeMs: 5_000 },
    now: steadyTime(systemClock),
    log: createMemoryLog().log,
  });
}

/** Its answers take a while, as if they came over a network. */
function slowLedger(tookMs = 10): Ledger {
  const ledger = ledgerOf({ perMinute: 5, perDay: 1_000, known: true });
  return {
    ...ledger,
    async exchange(...request) {
      const standing = await ledger.exchange(...request);
      await new Promise((resolve) => {
        setTimeout(resolve, tookMs);
      });
      return standing;
    },
  };
}

interface CallOptions extends Partial<Turn> {
  readonly waitMs?: number;
  readonly tookMs?: number;
  /** What comes instead of the upstream's answer. */
  readonly answer?: UpstreamAnswer<string>;
}

/** One call by name; its answer comes after `tookMs`. */
function call(name: string, options: CallOptions = {}): Promise<Passage<string>> {
  const { kind = 'read', waitMs = 100_000, tookMs = 20, signal, answer } = options;
  return throttle.pass({ kind, deadlineMs: systemClock.elapsed() + waitMs, signal }, async () => {
    sent.push(name);
    const { status, headers } = upstream.arrive(Date.now());
    await new Promise((resolve) => {
      setTimeout(resolve, tookMs);
    });
    return answer ?? { outcome: OUTCOMES[status](name), sent: true, rateLimit: headers };
  });
}

const OUTCOMES = {
  200: (value: string): UpstreamOutcome<string> => ({ kind: 'ok', value }),
  403: (): UpstreamOutcome<string> => ({ kind: 'forbidden' }),
  429: (): UpstreamOutcome<string> => ({ kind: 'rate-limited' }),
};

/** All passages as one line each: the value, or why there is none. */
async function settled(passages: Promise<Passage<string>>[]): Promise<string[]> {
  return (await Promise.all(passages)).map((passage) => {
    if (passage.kind === 'answered') return passage.answer.outcome.kind;
    return passage.kind === 'refused' ? passage.reason : passage.kind;
  });
}

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);
const statuses = () => upstream.arrivals.map(({ status }) => status);
const elapse = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe('the plan', () => {
  // A reset that slides says nothing of itself; that calls answered before are no longer counted does.
  test("that has the limit of another one's day is known once the first calls have left its minute", async () => {
    const ledger = ledgerOf({ perMinute: 60, perDay: 1_000, known: false });
    start({ perMinute: 1_000, perDay: 100_000, windows: 'sliding' }, { ledger });
    for (let index = 0; index < 70; index += 1) {
      void call('r');
      await elapse(1_100);
    }
    expect(throttle.standing()).toMatchObject({ minute: { limit: 1_000 }, day: { limit: 100_000, used: 70 } });
  });

  test('lets one call go first, whose answer opens the window for the others', async () => {
    start();
    const passages = names('r', 4).map((name) => call(name, { tookMs: 500 }));
    await elapse(400);
    expect(sent).toEqual(['r1']);
    await elapse(1_000);
    expect(sent).toEqual(['r1', 'r2', 'r3', 'r4']);
    expect(await settled(passages)).toEqual(['ok', 'ok', 'ok', 'ok']);
  });

  test('holds back what the window does not hold, and lets it go after the reset, one first', async () => {
    start();
    const passages = names('r', 12).map((name) => call(name, { tookMs: 300, waitMs: 200_000 }));
    await elapse(58_000);
    expect(sent).toHaveLength(5);
    await elapse(2_600);
    expect(sent).toHaveLength(6);
    await elapse(1_000);
    expect(sent).toHaveLength(10);
    await elapse(62_000);
    expect(await settled(passages)).toEqual(names('r', 12).map(() => 'ok'));
    expect(sent).toEqual(names('r', 12));
    expect(new Set(statuses())).toEqual(new Set([200]));
  });

  test('counts the day for itself where no header tells of it, keeps one call in a hundred back, and then refuses at once', async () => {
    start({ perMinute: 300, perDay: 200 });
    await elapse(0);
    const passages = names('r', 210).map((name) => call(name));
    await elapse(30_000);
    expect(sent).toHaveLength(198);
    const outcomes = await settled(passages);
    expect(outcomes.filter((outcome) => outcome === 'plan')).toHaveLength(12);
    const late = await call('late');
    expect(late).toMatchObject({ kind: 'refused', reason: 'plan', window: 'DAY' });
    expect((late as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(23 * 3_600_000);
    expect(sent).toHaveLength(198);
  });

  test('is corrected by the headers where the upstream allows less', async () => {
    start({ perMinute: 3 }, { ledger: ledgerOf({ perMinute: 60, perDay: 1_000, known: true }) });
    for (const name of names('r', 9)) void call(name);
    await elapse(57_000);
    expect(sent).toHaveLength(3);
    expect(throttle.standing()).toMatchObject({ minute: { limit: 3, remaining: 0 } });
  });

  test('is corrected by the headers where the upstream allows more, and the day with the minute', async () => {
    start({ perMinute: 300, perDay: 10_000 }, { ledger: ledgerOf({ perMinute: 60, perDay: 1_000, known: false }) });
    for (const name of names('r', 290)) void call(name);
    await elapse(20_000);
    expect(sent).toHaveLength(290);
    expect(throttle.standing()).toMatchObject({ minute: { limit: 300 }, day: { limit: 10_000 }, planKnown: true });
  });
});

describe('the order', () => {
  test('is writes before reads, and first come, first served within each', async () => {
    start();
    void call('probe', { tookMs: 1_000 });
    await elapse(500);
    for (const name of ['r1', 'r2']) void call(name);
    for (const name of ['w1', 'w2']) void call(name, { kind: 'write' });
    await elapse(2_000);
    expect(sent).toEqual(['probe', 'w1', 'w2', 'r1', 'r2']);
  });

  test('is kept while one call at a time is all that is allowed', async () => {
    start({}, { maxConcurrent: 1 });
    for (const name of ['r1', 'r2', 'r3']) void call(name, { tookMs: 100 });
    await elapse(50);
    void call('w1', { kind: 'write', tookMs: 100 });
    await elapse(2_000);
    expect(sent).toEqual(['r1', 'w1', 'r2', 'r3']);
  });
});

describe('who need not wait', () => {
  /** All that happens without a timer. */
  const settle = async () => {
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
  };

  test('goes at once, as many as may be under way', async () => {
    start({ perMinute: 50 }, { maxConcurrent: 3 });
    void call('probe');
    await elapse(100);
    for (const name of names('r', 5)) void call(name, { tookMs: 100 });
    await settle();
    expect(sent).toEqual(['probe', 'r1', 'r2', 'r3']);
    await elapse(1_000);
    expect(sent).toEqual(['probe', ...names('r', 5)]);
  });

  test('does so again when those who had to wait are served', async () => {
    start({ perMinute: 50 });
    for (const name of names('r', 4)) void call(name, { tookMs: 100 });
    await elapse(1_000);
    void call('late');
    await settle();
    expect(sent).toEqual([...names('r', 4), 'late']);
  });

  test('does not pass those who wait', async () => {
    start({ perMinute: 50 }, { maxConcurrent: 2 });
    void call('probe');
    await elapse(100);
    void call('r1', { tookMs: 100 });
    void call('r2', { tookMs: 150 });
    void call('r3', { tookMs: 100 });
    await elapse(99);
    // Bottleneck is about to let r3 go.
    await vi.advanceTimersByTimeAsync(1);
    void call('r4');
    await elapse(1_000);
    expect(sent).toEqual(['probe', 'r1', 'r2', 'r3', 'r4']);
  });

  test('and leaves while its grant is on its way gives the grant back', async () => {
    start({}, { ledger: slowLedger() });
    const abort = new AbortController();
    const passage = call('gone', { signal: abort.signal });
    await elapse(5);
    abort.abort();
    await elapse(100);
    expect(await settled([passage])).toEqual(['aborted']);
    for (const name of names('r', 5)) void call(name);
    await elapse(1_000);
    expect(sent).toEqual(names('r', 5));
  });
});

test('no more calls are under way than may be, each kind goes in its order, and no grant is lost', async () => {
  const entry = fc.record({
    afterMs: fc.nat(120),
    tookMs: fc.nat(300),
    kind: fc.constantFrom('read' as const, 'write' as const),
    leavesAfterMs: fc.option(fc.nat(200), { freq: 3 }),
    waitMs: fc.constantFrom(50, 70_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 40 }), fc.integer({ min: 1, max: 4 }), async (entries, most) => {
      sent = [];
      let granted = 0;
      let reported = 0;
      const ledger = ledgerOf({ perMinute: 25, perDay: 1_000, known: true });
      const metered: Ledger = {
        ...ledger,
        async exchange(apiKey, request) {
          reported += request.reports.length;
          const standing = await ledger.exchange(apiKey, request);
          granted += standing.grants.length;
          return standing;
        },
      };
      start({ perMinute: 25 }, { maxConcurrent: most, ledger: metered });
      let underWay = 0;
      let mostUnderWay = 0;
      const passages: Promise<unknown>[] = [];
      for (const [index, { afterMs, tookMs, kind, leavesAfterMs, waitMs }] of entries.entries()) {
        await elapse(afterMs);
        const abort = new AbortController();
        if (leavesAfterMs !== null) setTimeout(() => abort.abort(), leavesAfterMs);
        const turn = { kind, deadlineMs: systemClock.elapsed() + waitMs, signal: abort.signal };
        const send = async (): Promise<UpstreamAnswer<string>> => {
          sent.push(`${kind} ${index}`);
          underWay += 1;
          mostUnderWay = Math.max(mostUnderWay, underWay);
          const { headers } = upstream.arrive(Date.now());
          await new Promise((resolve) => {
            setTimeout(resolve, tookMs);
          });
          underWay -= 1;
          return { outcome: { kind: 'ok', value: '' }, sent: true, rateLimit: headers };
        };
        passages.push(throttle.pass(turn, send));
      }
      await elapse(200_000);
      await Promise.all(passages);
      await throttle.close();
      expect(mostUnderWay).toBeLessThanOrEqual(most);
      for (const kind of ['read', 'write']) {
        const order = sent.filter((name) => name.startsWith(kind)).map((name) => Number(name.split(' ')[1]));
        expect(order).toEqual(order.toSorted((one, other) => one - other));
      }
      expect(reported).toBe(granted);
      expect(statuses().filter((status) => status !== 200)).toEqual([]);
    }),
    { numRuns: Number(process.env['FUZZ_RUNS'] ?? 40) },
  );
});

describe('a ledger that is alone', () => {
  /** It grants two calls at a time until it has joined the others. */
  function lonelyLedger() {
    const ledger = ledgerOf({ perMinute: 5, perDay: 1_000, known: true });
    const lonely = {
      ...ledger,
      alone: true,
      async exchange(...[apiKey, { reports, wanted }]: Parameters<Ledger['exchange']>) {
        if (!lonely.alone) return ledger.exchange(apiKey, { reports, wanted });
        const standing = await ledger.exchange(apiKey, { reports, wanted: Math.min(wanted, 2) });
        return { ...standing, atATime: 2 };
      },
    };
    return lonely;
  }

  test('has as many calls under way as it allows', async () => {
    start({}, { ledger: lonelyLedger() });
    const passages = names('r', 5).map((name) => call(name, { tookMs: 100 }));
    await elapse(90);
    expect(sent).toEqual(['r1']);
    await elapse(100);
    expect(sent).toEqual(['r1', 'r2', 'r3']);
    await elapse(1_000);
    expect(await settled(passages)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
  });

  test('is asked again, though as many are under way and hang', async () => {
    const ledger = lonelyLedger();
    start({}, { ledger });
    await Promise.all([call('probe'), elapse(100)]);
    for (const name of ['hangs', 'hangs, too', 'waits']) void call(name, { tookMs: 60_000 });
    await elapse(1_000);
    expect(sent).toEqual(['probe', 'hangs', 'hangs, too']);
    ledger.alone = false;
    await elapse(300);
    expect(sent.at(-1)).toBe('waits');
  });
});

// Where the answer came in the same turn of the event loop, no timer, no request and no signal had its turn any more.
test('a ledger that is closed for no time at all is not asked again at once', async () => {
  const ledger = ledgerOf({ perMinute: 5, perDay: 1_000, known: true });
  let asked = 0;
  const standingOf = async (...[apiKey, request]: Parameters<Ledger['exchange']>): Promise<Standing> => {
    asked += 1;
    const standing = await ledger.exchange(apiKey, asked < 1_000 ? { ...request, wanted: 0 } : request);
    return asked < 1_000 ? { ...standing, closed: 'day', waitMs: 0 } : standing;
  };
  start({}, { ledger: { ...ledger, exchange: standingOf } });
  const passage = call('r1', { waitMs: 1_000 });
  await elapse(1_000);
  expect(await settled([passage])).toEqual(['plan']);
  expect(asked).toBeLessThanOrEqual(50);
});

describe('a waiter', () => {
  test('is refused at once when its wait would be longer than its deadline, and told when to come back', async () => {
    start();
    for (const name of names('r', 5)) void call(name);
    await elapse(1_000);
    const passage = await call('late', { waitMs: 10_000 });
    expect(passage).toMatchObject({ kind: 'refused', reason: 'plan', window: 'MINUTE' });
    const { retryAfterMs } = passage as { retryAfterMs: number };
    // The window ends in 58 s, by whole seconds of a clock that is a little behind.
    expect(retryAfterMs).toBeGreaterThan(57_000);
    expect(retryAfterMs).toBeLessThan(61_000);
    expect(sent).toHaveLength(5);
  });

  test('behind more waiters than the next window holds is refused when the window after it is too late', async () => {
    start();
    const passages = names('r', 16).map((name) => call(name, { waitMs: 100_000 }));
    await elapse(1_000);
    // Five now, five in the next minute; the others would have to wait for the one after it.
    await elapse(70_000);
    expect(await settled(passages)).toEqual([...names('r', 10).map(() => 'ok'), ...names('r', 6).map(() => 'plan')]);
  });

  test('is refused at its deadline', async () => {
    start();
    const stuck = call('stuck', { tookMs: 4_000 });
    const passage = call('late', { waitMs: 2_000 });
    await elapse(1_999);
    let done = false;
    void passage.then(() => (done = true));
    await elapse(0);
    expect(done).toBe(false);
    await elapse(2);
    expect(await settled([passage])).toEqual(['plan']);
    await elapse(4_000);
    expect(await settled([stuck])).toEqual(['ok']);
    expect(sent).toEqual(['stuck']);
  });

  test('that would wait for nothing is not late because the ledger takes its time, even where it may not wait', async () => {
    start({}, { ledger: slowLedger() });
    const passages: Promise<Passage<string>>[] = [];
    for (const name of names('r', 6)) {
      passages.push(call(name, { waitMs: 0 }));
      await elapse(100);
    }
    expect(await settled(passages)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok', 'plan']);
  });

  test('is refused a moment after its deadline where the ledger has said nothing, and its grant goes back', async () => {
    start({}, { ledger: slowLedger(400) });
    let ends: string[] = [];
    void settled([call('late', { waitMs: 200 })]).then((all) => (ends = all));
    await elapse(301);
    expect(ends).toEqual(['late']);
    for (const name of names('r', 5)) void call(name);
    await elapse(5_000);
    expect(sent).toEqual(names('r', 5));
  });

  test('that goes away is gone at once, and nothing is sent for it', async () => {
    start();
    const abort = new AbortController();
    const passages = names('r', 20).map((name) => call(name, { signal: abort.signal, waitMs: 400_000 }));
    await elapse(1_000);
    expect(throttle.waiting('read')).toBe(15);
    expect(throttle.waiting('write')).toBe(0);
    abort.abort();
    expect(throttle.waiting('read')).toBe(0);
    expect((await settled(passages)).filter((outcome) => outcome === 'aborted')).toHaveLength(15);
    await elapse(120_000);
    expect(sent).toHaveLength(5);
    expect(throttle.standing()?.minute.remaining).toBe(5);
  });

  test('that goes away while nine in ten others do leaves the whole window to the rest', async () => {
    start({ perMinute: 50 });
    const abort = new AbortController();
    void call('probe', { tookMs: 1_000 });
    const gone = names('gone', 450).map((name) => call(name, { signal: abort.signal }));
    const rest = names('rest', 49).map((name) => call(name));
    await elapse(500);
    abort.abort();
    await elapse(5_000);
    expect(new Set(await settled(gone))).toEqual(new Set(['aborted']));
    expect(await settled(rest)).toEqual(rest.map(() => 'ok'));
    expect(sent).toEqual(['probe', ...names('rest', 49)]);
  });

  test('too many is refused as one too many', async () => {
    start({}, { maxWaiting: 3 });
    const passages = names('r', 5).map((name) => call(name));
    await elapse(100);
    expect((await settled(passages.slice(3))).toSorted()).toEqual(['crowded', 'crowded']);
  });

  test('with nothing left to send gives its place back, which costs nothing', async () => {
    start();
    const passage = throttle.pass({ kind: 'read', deadlineMs: systemClock.elapsed() + 1_000 }, () => undefined);
    await elapse(100);
    expect(await passage).toEqual({ kind: 'unused' });
    for (const name of names('r', 5)) void call(name);
    await elapse(1_000);
    expect(sent).toHaveLength(5);
  });
});

describe('the gate', () => {
  test('closes with a 429 for all, waits for the upstream, and opens with one probe', async () => {
    start();
    // Somebody else spends the key's window.
    for (let index = 0; index < 5; index += 1) upstream.arrive(Date.now());
    const passages = names('r', 3).map((name) => call(name));
    await elapse(1_000);
    expect(sent).toEqual(['r1']);
    expect(await settled([passages[0] as Promise<Passage<string>>])).toEqual(['rate-limited']);
    expect(throttle.standing()?.pausedForMs).toBeGreaterThan(57_000);
    await elapse(58_000);
    expect(sent).toEqual(['r1']);
    await elapse(3_000);
    expect(await settled(passages.slice(1))).toEqual(['ok', 'ok']);
    const refusedAt = upstream.arrivals.findIndex(({ status }) => status === 429);
    expect(upstream.arrivals[refusedAt + 1]?.atMs).toBeGreaterThanOrEqual(upstream.closedUntilMs);
  });

  test('stays closed twice as long after each further 429: eight calls in ten minutes of them, at most', async () => {
    start();
    const none = {
      limit: undefined,
      remaining: undefined,
      reset: undefined,
      retryAfterMs: undefined,
      dateMs: undefined,
    };
    const answer: UpstreamAnswer<string> = { outcome: { kind: 'rate-limited' }, sent: true, rateLimit: none };
    for (let second = 0; second < 600; second += 1) {
      void call(`r${second}`, { answer, waitMs: 600_000 });
      await elapse(1_000);
    }
    expect(sent.length).toBeGreaterThan(4);
    expect(sent.length).toBeLessThanOrEqual(8);
  });

  test('takes refusals of calls that were under way together for one', async () => {
    start({ perMinute: 50 });
    void call('first');
    await elapse(100);
    for (let index = 0; index < 49; index += 1) upstream.arrive(Date.now());
    for (const name of names('r', 10)) void call(name, { tookMs: 50 });
    await elapse(1_000);
    expect(sent).toHaveLength(11);
    expect(throttle.standing()?.pausedForMs).toBeLessThan(61_000);
  });

  test('closes for a growing time when the key is refused right after a 429, since it may be banned', async () => {
    start({ banAt: 2 });
    for (let index = 0; index < 5; index += 1) upstream.arrive(Date.now());
    await Promise.all([call('r1'), elapse(1_000)]);
    // The ban comes although the gate was kept: somebody else goes on with the key.
    upstream.arrive(Date.now());
    await elapse(62_000);
    const banned = call('r2');
    await elapse(1_000);
    expect(await settled([banned])).toEqual(['forbidden']);
    expect(throttle.standing()).toMatchObject({ banned: true, refusedLately: true });
    expect(await call('r3', { waitMs: 10_000 })).toMatchObject({ kind: 'refused', reason: 'banned' });
    expect(sent).toEqual(['r1', 'r2']);
  });

  test('is not closed by a 403 that follows no 429', async () => {
    start();
    const headers = { limit: 5, remaining: 4, reset: 1_795_262_460, retryAfterMs: undefined, dateMs: Date.now() };
    const answer: UpstreamAnswer<string> = { outcome: { kind: 'forbidden' }, sent: true, rateLimit: headers };
    const passages = names('r', 3).map((name) => call(name, { answer }));
    await elapse(1_000);
    expect(await settled(passages)).toEqual(['forbidden', 'forbidden', 'forbidden']);
    expect(throttle.standing()).toMatchObject({ banned: false, pausedForMs: 0 });
  });
});

test('whoever only looks leaves no timer behind', async () => {
  start();
  const timers = vi.getTimerCount();
  await throttle.refreshed();
  expect(vi.getTimerCount()).toBe(timers);
});

describe('closing', () => {
  test('refuses whoever waits at once and lets what was sent end', async () => {
    start();
    const passages = names('r', 200).map((name) => call(name, { tookMs: 2_000 }));
    await elapse(500);
    const closing = throttle.close();
    expect((await settled(passages.slice(1))).filter((outcome) => outcome === 'stopping')).toHaveLength(199);
    let closed = false;
    void closing.then(() => (closed = true));
    await elapse(1_000);
    expect(closed).toBe(false);
    await elapse(1_000);
    expect(closed).toBe(true);
    expect(await settled(passages.slice(0, 1))).toEqual(['ok']);
    expect(await settled([call('late')])).toEqual(['stopping']);
  });

  test('is over at once where nothing was ever called', async () => {
    start();
    await expect(throttle.close()).resolves.toBeUndefined();
  });
});

test('whoever hears of a 429 and asks for another call at once is held back by it', async () => {
  start();
  await Promise.all([call('first'), elapse(100)]);
  const refused: UpstreamAnswer<string> = {
    outcome: { kind: 'rate-limited' },
    sent: true,
    rateLimit: { limit: 5, remaining: 0, reset: undefined, retryAfterMs: 30_000, dateMs: Date.now() },
  };
  const again = call('refused', { answer: refused }).then(() => call('again', { waitMs: 5_000 }));
  await elapse(20_000);
  expect(sent).toEqual(['first', 'refused']);
  expect(await settled([again])).toEqual(['plan']);
});

test('a replica whose probe was given back looks after the probes of others', async () => {
  const open = Promise.withResolvers<void>();
  const refused = Promise.withResolvers<UpstreamAnswer<string>>();
  const window = { mode: 'told', limit: 5, used: 0, remaining: 5, resetInMs: 60_000, resetId: 1 } as const;
  const rest = {
    generation: 'g',
    started: 0,
    dayFreeInMs: 0,
    pausedForMs: 0,
    banned: false,
    refusedLately: false,
    planKnown: true,
  };
  const standing: Standing = { ...rest, grants: [], closed: 'probing', waitMs: 5_000, minute: window, day: window };
  const grantOf = (number: number, probe: boolean): Grant => {
    return { generation: 'g', start: number, countedBefore: 0, grantedAtMs: 0, probe };
  };
  const asked: Exchange[] = [];
  const ledger: Ledger = {
    async exchange(_apiKey, request) {
      asked.push(request);
      if (asked.length === 1) return { ...standing, grants: [grantOf(1, false)] };
      if (asked.length > 2) return standing;
      await open.promise;
      return { ...standing, grants: [grantOf(2, true)], closed: undefined, waitMs: 0 };
    },
    close: () => Promise.resolve(),
  };
  start({}, { ledger });
  const first = throttle.pass({ kind: 'read', deadlineMs: Infinity }, () => refused.promise);
  await elapse(1);
  void call('second');
  await elapse(100);
  // The probe waits for its place as the 429 comes.
  open.resolve();
  const { headers } = upstream.arrive(Date.now());
  refused.resolve({ outcome: { kind: 'rate-limited' }, sent: true, rateLimit: headers });
  await first;
  expect(asked[2]?.reports.map(({ kind }) => kind)).toEqual(['refused', 'returned']);
  expect(sent).toEqual([]);
  // Another replica has the probe now; its lease would be five seconds.
  const before = asked.length;
  await elapse(1_000);
  expect(asked.length - before).toBeGreaterThan(3);
});

describe('a ledger that fails', () => {
  /** Throws at once, or rejects, as long as it is broken. */
  function brokenLedger(how: 'rejects' | 'throws') {
    const ledger = ledgerOf({ perMinute: 5, perDay: 1_000, known: true });
    const state = { broken: false, asked: [] as Exchange[] };
    const broken: Ledger = {
      ...ledger,
      exchange(apiKey, request) {
        state.asked.push(request);
        if (!state.broken) return ledger.exchange(apiKey, request);
        if (how === 'throws') throw new Error('a mistake');
        return Promise.reject(new Error('a mistake'));
      },
    };
    return { broken, state };
  }

  // It ended the process, and where something caught it, the key was never asked for again.
  test.each(['throws', 'rejects'] as const)('and %s costs those who wait an error, and nobody else', async (how) => {
    const { broken, state } = brokenLedger(how);
    start({}, { ledger: broken });
    state.broken = true;
    const passages = await Promise.allSettled([call('r1'), call('r2')]);
    expect(passages.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(throttle.refreshed()).rejects.toThrow('a mistake');
    expect(throttle.isBusy()).toBe(false);
    state.broken = false;
    const later = call('r3');
    await elapse(1_100);
    expect(await settled([later])).toEqual(['ok']);
  });

  test('is told of a refusal until it hears it, and of nothing else twice', async () => {
    const { broken, state } = brokenLedger('rejects');
    start({}, { ledger: broken });
    const probe = call('r0');
    await elapse(100);
    expect(await settled([probe])).toEqual(['ok']);
    const refusal = { outcome: OUTCOMES[429](), sent: true, rateLimit: NO_HEADERS };
    const calls = [call('r1'), call('r2', { answer: refusal })];
    await elapse(5);
    state.broken = true;
    await elapse(2_500);
    await Promise.allSettled(calls);
    state.broken = false;
    await elapse(1_000);
    expect(throttle.standing()?.pausedForMs).toBeGreaterThan(0);
    const kinds = state.asked.slice(-2).flatMap(({ reports }) => reports.map(({ kind }) => kind));
    expect(kinds).toEqual(['refused', 'refused']);
    await throttle.close();
  });

  test('does not keep the throttle from closing', async () => {
    const { broken, state } = brokenLedger('rejects');
    start({}, { ledger: broken });
    const refusal = { outcome: OUTCOMES[429](), sent: true, rateLimit: NO_HEADERS };
    const calls = [call('r1', { answer: refusal })];
    await elapse(5);
    state.broken = true;
    await elapse(100);
    const closing = throttle.close();
    await elapse(3_000);
    await closing;
    await Promise.allSettled(calls);
    expect(throttle.isBusy()).toBe(false);
  });

  // NaN calls are neither none nor one: it was asked again in every microtask, and nothing else ever ran.
  test.each([
    ['that nothing is closed', { closed: undefined, waitMs: 0 }],
    ['no number to wait for', { closed: 'minute', waitMs: NaN }],
  ] as const)('and grants nothing and says %s is asked again a second later', async (_name, said) => {
    const ledger = ledgerOf({ perMinute: 5, perDay: 1_000, known: true });
    const standing = await ledger.exchange('a key', { reports: [], wanted: 0 });
    let asked = 0;
    const exchange = () => Promise.resolve({ ...standing, ...said, ...((asked += 1) > 1_000 ? NO_MORE : {}) });
    start({}, { ledger: { ...ledger, exchange } });
    const passage = call('r1', { waitMs: 2_500 });
    await elapse(2_600);
    await passage;
    expect(asked).toBeLessThan(5);
  });
});
