import type { Clock } from '../clock.ts';
import type { WaitEvent } from '../events.ts';
import { inTime, leftMs } from '../in-time.ts';
import type { UpstreamAnswer } from '../upstream/pet-api.ts';
import { agedStanding } from './aged-standing.ts';
import { expectedWait } from './expected-wait.ts';
import { ALONE_GOOD_MS } from './ledger.ts';
import type { Exchange, Grant, Ledger, Report, Standing } from './ledger.ts';
import { readWindows } from './readings.ts';
import { createRecentAnswers } from './recent-answers.ts';
import { createSlots } from './slots.ts';
import type { Slots } from './slots.ts';
import type { UpstreamClock } from './upstream-clock.ts';

/**
 * Every call of one caller to the upstream passes here, and none leaves that its plan does not allow.
 *
 * It has no getters: V8 would hold what is made with them, for each caller, until it goes through the whole heap.
 */
export interface Throttle {
  /**
   * Waits for a place in the plan and then sends. Writes go before reads, and each in the order in which they came.
   *
   * @param send what to do with the place. It may answer undefined where there is nothing left to do: the place is given
   * back then, and costs nothing.
   */
  pass<T>(turn: Turn, send: () => Promise<UpstreamAnswer<T>> | undefined): Promise<Passage<T>>;
  /** How the caller stands as far as is known here; at no cost. Undefined before the first call. */
  standing(): Standing | undefined;
  /** The same, asked of the ledger anew. */
  refreshed(): Promise<Standing>;
  /** What a read has to expect that has so many others before it. */
  outlook(ahead: number): Outlook;
  /** How many of these wait. Calls may be planned for which no place is asked for yet. */
  waiting(kind: Turn['kind']): number;
  /**
   * Settles once the ledger has said what may be sent, and at once where it is not being asked: what it is about to allow is
   * not late because it takes a moment to say so. False where it takes longer than that.
   */
  toldBy(deadlineMs: number): Promise<boolean>;
  /** Whether anybody waits, or a call is under way or not yet reported. */
  isBusy(): boolean;
  /** Refuses whoever waits and whoever comes, and settles once the calls under way are reported. */
  close(): Promise<void>;
}

export interface Turn {
  readonly kind: 'read' | 'write';
  /** By `clock.elapsed()`: later than this, a place is of no use. Infinity where whoever waits sees to that. */
  readonly deadlineMs: number;
  /** Whoever asked is gone, and the place is not wanted any more. */
  readonly signal?: AbortSignal | undefined;
}

export type Passage<T> =
  | { readonly kind: 'answered'; readonly answer: UpstreamAnswer<T> }
  /** `send` had nothing to send. */
  | { readonly kind: 'unused' }
  | Refused;

export interface Refused {
  readonly kind: 'refused';
  /** `plan`: the plan allows no call before the deadline. The others speak for themselves. */
  readonly reason: 'aborted' | 'banned' | 'crowded' | 'late' | 'plan' | 'stopping';
  /** When to come back. */
  readonly retryAfterMs: number;
  readonly window: 'DAY' | 'MINUTE';
}

export interface Outlook {
  /** How long until its turn, at least; 0 where nothing is known to keep it. */
  readonly waitMs: number;
  /** What it is told where that is too long. */
  readonly refused: Refused;
}

export interface ThrottleOptions {
  readonly apiKey: string;
  readonly ledger: Ledger;
  readonly upstreamClock: UpstreamClock;
  readonly clock: Clock;
  /** Calls at a time. Default 50. */
  readonly maxConcurrent?: number;
  /** Waiters at most; further ones are refused. Default 1000. */
  readonly maxWaiting?: number;
  /** The outlook has changed. */
  onChange?(): void;
  /** A call has had its turn, and is being sent. */
  onTurn?(event: WaitEvent): void;
}

interface Waiter {
  readonly deadlineMs: number;
  /** Sends, and settles once it is known what became of the grant. */
  use(grant: Grant): Promise<Use>;
  refuse(refused: Refused): void;
  fail(error: unknown): void;
}

/** What is counted of one limiter, so that what a forgotten one still lets go counts for nobody else. */
interface Places {
  readonly slots: Slots;
  /** Taken and not yet opened. */
  taken: number;
  /** Of those, the ones that were let go for a grant and are about to open. */
  released: number;
}

interface Use {
  readonly report: Report;
  /** Tells whoever waited; once the report counts, so that nothing it does next goes without it. */
  tell(): void;
}

/**
 * While somebody else's probe is under way, the ledger is asked again after this, then after twice this, and so on; while it is
 * closed, never sooner.
 */
const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 200;
/** A ledger that fails, or says nothing that makes sense, is not asked for more before this. */
const FAILED_MS = 1_000;

/** How long a limiter is kept that has nothing to do. */
const IDLE_MS = 1_000;

/** Timers hold 24 days at most, and pauses can be longer. */
const LONGEST_SLEEP_MS = 3_600_000;
/** So long nobody is refused by what the ledger said: its time goes on while the machine sleeps, and this process's may not. */
const GOOD_MS = 60_000;

export function createThrottle(options: ThrottleOptions): Throttle {
  const { apiKey, ledger, upstreamClock, clock, maxConcurrent = 50, maxWaiting = 1_000 } = options;
  const writes = new Set<Waiter>();
  const reads = new Set<Waiter>();
  /** Granted, and not yet in use. */
  const grants: Grant[] = [];
  const reports: Report[] = [];
  const answers = createRecentAnswers(clock);
  /** For those who have to wait; whoever may go at once goes without it. */
  let places: Places | undefined;
  let idle: NodeJS.Timeout | undefined;
  /** Under way, with a place or without. With `grants` never more than `maxConcurrent`. */
  let running = 0;
  let latest: { received: Standing; atMs: number } | undefined;
  let aged: { received: Standing; wholeMs: number; standing: Standing } | undefined;
  /** By `clock.elapsed()`: before this, asking for more is of no use. */
  let closedUntilMs = 0;
  let wake: NodeJS.Timeout | undefined;
  let polls = 0;
  /** Whether the probe that everybody waits for is ours; its report then says when to go on. */
  let probing = false;
  let exchanging: Promise<Standing> | undefined;
  let stopping = false;
  let closing: Promise<void> | undefined;
  let onClosed: (() => void) | undefined;

  return {
    pass: (turn, send) => pass(turn, send),
    standing,
    async refreshed() {
      const latestStanding = await exchangeOnce(0);
      return standing() ?? latestStanding;
    },
    outlook(ahead) {
      const now = believed();
      const before = ahead + writes.size - grants.length;
      const waitMs = now && before >= 0 ? expectedWait(now, before).waitMs : 0;
      return { waitMs, refused: refusal('plan', Math.max(0, before)) };
    },
    waiting(kind) {
      return kind === 'write' ? writes.size : reads.size;
    },
    toldBy,
    isBusy,
    close() {
      stopping = true;
      clearTimeout(wake);
      for (const waiter of [...writes, ...reads]) waiter.refuse(refusal('stopping', 0));
      closing ??= new Promise((resolve) => {
        onClosed = resolve;
        // With what the ledger has not heard.
        advance();
      });
      return closing;
    },
  };

  function pass<T>(turn: Turn, send: () => Promise<UpstreamAnswer<T>> | undefined): Promise<Passage<T>> {
    return new Promise((resolve, reject) => {
      const { signal, deadlineMs } = turn;
      const askedAtMs = clock.elapsed();
      const queue = turn.kind === 'write' ? writes : reads;
      if (stopping) return resolve(refusal('stopping', 0));
      if (signal?.aborted) return resolve(refusal('aborted', 0));
      if (writes.size + reads.size >= maxWaiting) return resolve(refusal('crowded', maxWaiting));
      const leave = () => {
        queue.delete(waiter);
        clearTimeout(deadline);
        signal?.removeEventListener('abort', onAbort);
      };
      const waiter: Waiter = {
        deadlineMs,
        refuse(refused) {
          leave();
          resolve(refused);
        },
        fail(error) {
          leave();
          reject(error);
        },
        async use(grant) {
          leave();
          const sentAtMs = clock.elapsed();
          const answeredBefore = answers.count();
          try {
            const sending = send();
            if (!sending) return { report: { kind: 'returned', grant }, tell: () => resolve({ kind: 'unused' }) };
            options.onTurn?.({ kind: turn.kind, waitedMs: sentAtMs - askedAtMs });
            const answer = await sending;
            const report = reportOf(grant, answer, { tookMs: clock.elapsed() - sentAtMs, answeredBefore });
            return { report, tell: () => resolve({ kind: 'answered', answer }) };
          } catch (error) {
            return { report: { kind: 'lost', grant }, tell: () => reject(error) };
          }
        },
      };
      const onAbort = () => waiter.refuse(refusal('aborted', 0));
      const onDeadline = async () => {
        const reason = (await toldBy(deadlineMs)) ? 'plan' : 'late';
        if (queue.has(waiter)) waiter.refuse(refusal(reason, position(waiter)));
      };
      const deadline =
        deadlineMs === Infinity
          ? undefined
          : setTimeout(() => void onDeadline(), Math.max(0, deadlineMs - clock.elapsed()));
      signal?.addEventListener('abort', onAbort, { once: true });
      queue.add(waiter);
      advance();
    });
  }

  function mostAtATime(): number {
    return Math.min(maxConcurrent, latest?.received.atATime ?? Infinity);
  }

  function toldBy(deadlineMs: number): Promise<boolean> {
    const told = Promise.allSettled([exchanging]).then(() => true);
    return inTime(told, leftMs(deadlineMs, clock), false);
  }

  /** Refuses whom the wait would cost the deadline, and gets places for the others. */
  function advance(): void {
    refuseHopeless();
    const waiting = writes.size + reads.size;
    // No more than can be sent at once: a grant that lies about is as good as spent for everybody else.
    const wanted = Math.min(waiting, mostAtATime() - running) - grants.length;
    const closed = clock.elapsed() < closedUntilMs;
    const inDoubt = waiting > 0 && isInDoubt();
    if (reports.length > 0 || (wanted > 0 && !closed) || inDoubt) {
      // Whoever waits is told where it fails.
      exchangeOnce(wanted).catch(() => {});
      return;
    }
    if (!exchanging) takePlaces();
    if (wanted > 0) wakeAt(closedUntilMs);
    else if (waiting > 0 && latest && isAlone(latest.received)) wakeAt(latest.atMs + ALONE_GOOD_MS);
    else letGo();
  }

  /** A caller with nothing under way keeps no limiter, once it has been so for a moment: calls that follow each other share one. */
  function letGo(): void {
    if (isBusy()) return;
    onClosed?.();
    if (places) idle ??= setTimeout(forgetSlots, IDLE_MS).unref();
  }

  function forgetSlots(): void {
    idle = undefined;
    if (!isBusy()) places = undefined;
  }

  function isBusy(): boolean {
    return exchanging !== undefined || running + grants.length + reports.length + writes.size + reads.size > 0;
  }

  /** One exchange at a time: what comes up meanwhile goes into the next. */
  function exchangeOnce(wanted: number): Promise<Standing> {
    if (exchanging) return exchanging;
    exchanging = (async () => {
      const told = reports.splice(0);
      const asked = Math.max(0, wanted);
      let received: Standing;
      try {
        received = await exchange({ reports: told, wanted: asked });
      } catch (error) {
        exchanging = undefined;
        fail(error, told);
        throw error;
      }
      exchanging = undefined;
      settle(received, asked);
      options.onChange?.();
      advance();
      return received;
    })();
    return exchanging;
  }

  /** Where the ledger throws at once, this rejects: by then it is noted that there is an exchange. */
  function exchange(request: Exchange): Promise<Standing> {
    try {
      return ledger.exchange(apiKey, request);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * The ledger has failed, which it never should. What was to be reported may have counted or not: it is not told again, and
   * counts as spent. But a refusal is told until it is heard, or the key would go on calling in its pause.
   */
  function fail(error: unknown, told: readonly Report[]): void {
    if (!stopping) reports.unshift(...told.filter(({ kind }) => kind === 'refused'));
    closedUntilMs = clock.elapsed() + FAILED_MS;
    for (const waiter of [...writes, ...reads]) waiter.fail(error);
    if (reports.length > 0) wakeAt(closedUntilMs);
    else letGo();
  }

  function settle(received: Standing, asked: number): void {
    const nowMs = clock.elapsed();
    latest = { received, atMs: nowMs };
    grants.push(...received.grants);
    probing ||= received.grants.some(({ probe }) => probe);
    polls = received.closed === 'probing' && !probing ? polls + 1 : 0;
    const pollMs = polls === 0 ? Infinity : Math.min(FIRST_POLL_MS * 2 ** (polls - 1), LONGEST_POLL_MS);
    // One that grants nothing, and says neither why nor for how long, would be asked again at once, for ever.
    const silent = asked > 0 && received.grants.length === 0 && !received.closed;
    const toldMs = silent || Number.isNaN(received.waitMs) ? FAILED_MS : received.waitMs;
    const waitMs = Math.min(pollMs, toldMs);
    // A ledger that answers at once, and says that it is closed for no time at all, would be asked for ever.
    closedUntilMs = nowMs + (received.closed ? Math.max(FIRST_POLL_MS, waitMs) : waitMs);
    useGrants();
    // Whoever is left has asked in vain, or comes when others are done.
    if (received.closed || running + grants.length >= mostAtATime()) takePlaces();
  }

  /** Those in the slots have waited longer. Beside them the slots' own timers would only delay a call. */
  function useGrants(): void {
    if (places) {
      const forPlaces = Math.min(grants.length, places.taken) - places.released;
      if (forPlaces > 0) {
        places.released += forPlaces;
        places.slots.release(forPlaces);
      }
    }
    while (grants.length > (places?.released ?? 0)) void useGrant();
  }

  function takePlaces(): void {
    if ((places?.taken ?? 0) >= writes.size + reads.size) return;
    places ??= { slots: createSlots({ maxConcurrent, maxQueued: maxWaiting + maxConcurrent }), taken: 0, released: 0 };
    const own = places;
    for (; own.taken < writes.size + reads.size; own.taken += 1) {
      own.slots.take(() => {
        own.taken -= 1;
        own.released -= 1;
        return useGrant();
      });
    }
  }

  /** Gives the oldest grant to who comes first, or back. */
  async function useGrant(): Promise<void> {
    const grant = grants.shift();
    if (!grant) return;
    const [waiter] = writes.size > 0 ? writes : reads;
    running += 1;
    const { report, tell } = waiter ? await waiter.use(grant) : unused(grant);
    running -= 1;
    reports.push(report);
    if (report.kind === 'refused') giveBack();
    tell();
    if (grant.probe) probing = false;
    // A report may open what was closed.
    closedUntilMs = 0;
    advance();
  }

  /** After a refusal nothing leaves that was granted before it. */
  function giveBack(): void {
    for (const grant of grants.splice(0)) {
      if (grant.probe) probing = false;
      reports.push({ kind: 'returned', grant });
    }
  }

  /** The same object within a millisecond, so that what was made of it holds as long. */
  function standing(): Standing | undefined {
    if (!latest) return undefined;
    const nowMs = clock.elapsed();
    const wholeMs = Math.floor(nowMs);
    if (aged?.received !== latest.received || aged.wholeMs !== wholeMs) {
      const standingNow = agedStanding(latest.received, nowMs - latest.atMs);
      aged = { received: latest.received, wholeMs, standing: standingNow };
    }
    return aged.standing;
  }

  /** The standing, as far as anybody may be refused by it. */
  function believed(): Standing | undefined {
    return isInDoubt() ? undefined : standing();
  }

  function isInDoubt(): boolean {
    if (!latest) return false;
    return clock.elapsed() - latest.atMs >= (isAlone(latest.received) ? ALONE_GOOD_MS : GOOD_MS);
  }

  function refuseHopeless(): void {
    const now = believed();
    if (!now) return;
    const nowMs = clock.elapsed();
    // Those that a grant is there for are as good as gone.
    let ahead = -grants.length;
    for (const waiter of [...writes, ...reads]) {
      const waitMs = ahead < 0 ? 0 : expectedWait(now, ahead).waitMs;
      if (waitMs > 0 && nowMs + waitMs > waiter.deadlineMs) waiter.refuse(refusal('plan', ahead));
      else ahead += 1;
    }
  }

  function wakeAt(atMs: number): void {
    clearTimeout(wake);
    wake = setTimeout(advance, Math.min(Math.max(1, Math.ceil(atMs - clock.elapsed())), LONGEST_SLEEP_MS));
  }

  function position(waiter: Waiter): number {
    return Math.max(0, [...writes, ...reads].indexOf(waiter));
  }

  function refusal(reason: Refused['reason'], ahead: number): Refused {
    const now = standing();
    const { waitMs, window = 'MINUTE' } = now ? expectedWait(now, ahead) : { waitMs: 0 };
    const banned = reason === 'plan' && now?.banned === true;
    return { kind: 'refused', reason: banned ? 'banned' : reason, retryAfterMs: Math.max(1_000, waitMs), window };
  }

  function reportOf(
    grant: Grant,
    { outcome, rateLimit, sent }: UpstreamAnswer<unknown>,
    { tookMs, answeredBefore }: { tookMs: number; answeredBefore: number },
  ): Report {
    if (!sent) return { kind: 'returned', grant };
    if (!rateLimit) return { kind: 'lost', grant };
    if (rateLimit.dateMs !== undefined) upstreamClock.observe(rateLimit.dateMs, tookMs);
    // What a key that is not known is told of limits is nobody's plan.
    const known = standing();
    const readings =
      known && outcome.kind !== 'unauthenticated'
        ? readWindows(
            rateLimit,
            { ...known, answered: answeredBefore },
            { upstreamNowMs: upstreamClock.now(), nowMs: clock.now() },
          )
        : [];
    const ban = outcome.kind === 'unauthenticated' || outcome.kind === 'forbidden';
    if (!ban && outcome.kind !== 'rate-limited') {
      // Without what is left, it may be somebody's answer who has counted nothing.
      if (readings.length > 0) answers.add();
      return { kind: 'answered', grant, readings };
    }
    const jitter = Math.floor(Math.random() * 1000) / 1000;
    const refused = { retryAfterMs: rateLimit.retryAfterMs ?? 0, ban, jitter };
    return { kind: 'refused', grant, readings, refusal: refused };
  }
}

function isAlone({ atATime }: Standing): boolean {
  return atATime !== undefined;
}

function unused(grant: Grant): Use {
  return { report: { kind: 'returned', grant }, tell() {} };
}
