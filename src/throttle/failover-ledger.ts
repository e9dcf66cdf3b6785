import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { inTime } from '../in-time.ts';
import { RedisAway } from '../store/redis.ts';
import { agedExchange } from './aged-exchange.ts';
import { agedStanding } from './aged-standing.ts';
import { createOwnTime, insist } from './insist.ts';
import { exchange, LONGEST_MINUTE_MS, newStateAlone, refusedLately, startedWithin } from './ledger-state.ts';
import type { LedgerRules, LedgerState, WindowState } from './ledger-state.ts';
import { ALONE_GOOD_MS } from './ledger.ts';
import type { Exchange, Grant, Ledger, Memory, Report, Standing, WindowStanding } from './ledger.ts';
import type { RedisLedger } from './redis-ledger.ts';
import type { Outage, Replicas } from './replicas.ts';

/**
 * Shares can only be guessed where others start or join meanwhile. Whoever finds a window overrun has then sent no more than
 * this.
 */
const ALONE_AT_A_TIME = 2;
/** Without Redis a replica cannot see the others. There may always be one more than there was a moment ago. */
const FEWEST_REPLICAS = 2;
/** Where it has never seen them: who starts while Redis is away takes so little that a fleet of as many keeps to the plan. */
const UNSEEN_REPLICAS = 50;
/** The ledger remembers its answers a little longer. */
const ASKED_AGAIN_WITHIN_MS = 50_000;
/** A caller that nobody has asked for in so long is forgotten here; Redis remembers its calls. */
const FORGOTTEN_AFTER_MS = 600_000;
/** What Redis was told so soon after an outage, by its clock, may be from before it, by that of the one in whose place it is. */
const CLOCKS_APART_MS = 1_000;
/** By so much, at most, an answer is older than it seems to whoever has just read it. */
const LATE_ANSWER_MS = 2_000;
/** How soon those that nobody asks for join, once Redis is back. */
const JOIN_EVERY_MS = 1_000;
const JOINING_AT_A_TIME = 100;
/** For how long, at most, whoever closes it waits until what was spent alone is told. */
const FAREWELL_MS = 1_000;
/** Of callers that Redis knows nothing of, at most; then the one that was asked for the longest ago is forgotten. */
const MOST_ALONE = 20_000;
/** Of callers that nobody asks for in their pause, at most. */
const MOST_PAUSED = 10_000;

/** What was known before the calls that are told of. */
type Past = Omit<Memory, 'calls' | 'underWay'>;

const NOTHING_SPENT: Past = { minuteUsed: 0, dayUsed: 0, pausedForMs: 0, refusedLately: false };

export interface FailoverLedgerOptions {
  readonly shared: RedisLedger;
  readonly replicas: Replicas;
  readonly rules: LedgerRules;
  readonly clock: Clock;
  /** Milliseconds since the epoch that never go back. */
  readonly now: () => number;
}

/** An exchange with Redis. */
interface Attempt {
  readonly id: string;
  readonly request: Exchange;
  /** When it was sent for the first time. */
  readonly atMs: number;
  /** How many had been started alone by then. */
  readonly startedAlone: number;
}

interface Heard {
  readonly standing: Standing;
  readonly atMs: number;
}

/** What Redis has answered without knowing all that was known before. */
interface Behind {
  readonly standing: Standing;
  readonly latest: Heard | undefined;
  readonly wanted: number;
}

/** What is known here of one caller. */
interface Account {
  /** How it stood when Redis was last heard of, and when. */
  latest: Heard | undefined;
  /** Grants of the shared ledger that nothing was reported of. */
  underWay: number;
  /** The last outage that Redis has heard of for this caller, or that was before it was known here. */
  outage: Outage | undefined;
  /** The ledger of this replica alone, while Redis is away. */
  alone: LedgerState | undefined;
  /** The exchange that Redis did not answer; it may have been carried out. */
  unanswered: Attempt | undefined;
  /** How many of the starts that were granted alone Redis has been told of. */
  toldAlone: number;
  usedAtMs: number;
  /** The same by the time in which this process ran. */
  askedAtMs: number;
  /** Exchanges that are under way. */
  exchanging: number;
  /** While it joins the others with nobody asking for it. */
  joining: Promise<void> | undefined;
}

/**
 * The shared ledger while Redis works. Without it, each replica finishes what it was granted, waits for the resets that it
 * knows of, probes once for itself, and takes the share of each window that is safe whatever the others do. When Redis is
 * back it reports what it used, gives up what is left of its share, and joins again. Never rejects.
 */
export function createFailoverLedger({ shared, replicas, rules, clock, now }: FailoverLedgerOptions): Ledger {
  const accounts = new Map<string, Account>();
  /** Those of them that have a ledger of their own, the one that was asked for last at the end. */
  const lonely = new Map<string, Account>();
  const ownTime = createOwnTime();
  const forgetting = setInterval(forget, 60_000).unref();
  const joining = setInterval(() => void joinMore(), JOIN_EVERY_MS).unref();
  let isJoining = false;
  /** The last outage after which Redis was told of all pauses that are known here. */
  let pausesToldAfter: Outage | undefined;
  let closed = false;

  return {
    async exchange(apiKey, request) {
      const account = accountOf(apiKey, request);
      if (account.joining) await account.joining;
      account.exchanging += 1;
      try {
        return await exchangeOnce(apiKey, account, request);
      } finally {
        account.exchanging -= 1;
      }
    },
    async close() {
      clearInterval(forgetting);
      clearInterval(joining);
      // What this process has spent alone would be spent again by the next.
      await inTime(joinAll(), FAREWELL_MS, undefined);
      closed = true;
      ownTime.close();
      await shared.close();
    },
  };

  async function exchangeOnce(apiKey: string, account: Account, request: Exchange): Promise<Standing> {
    if (!replicas.redisWorks) return exchangeAlone(apiKey, account, request);
    if (hasSpentShare(account)) {
      const standing = exchangeAlone(apiKey, account, request);
      await tellAlone(apiKey, account);
      return standing;
    }
    try {
      const standing = await exchangeShared(apiKey, account, request);
      // Others have called with it, which is worth knowing once Redis is away.
      if (account.latest && !accounts.has(apiKey)) accounts.set(apiKey, account);
      return standing;
    } catch (error) {
      if (!(error instanceof RedisAway)) throw error;
      replicas.redisFailed(error);
      return exchangeAlone(apiKey, account, request);
    }
  }

  async function joinMore(): Promise<void> {
    if (isJoining) return;
    isJoining = true;
    await joinAll();
    isJoining = false;
  }

  /**
   * What was spent alone, and a pause that Redis may have lost, is told for those too that nobody asks for any more: they may be
   * asked for elsewhere.
   */
  async function joinAll(): Promise<void> {
    const { outage } = replicas;
    const due = [...(outage === pausesToldAfter ? lonely : accounts)].filter(([, account]) => isDue(account));
    for (let first = 0; first < due.length; first += JOINING_AT_A_TIME) {
      if (closed || !replicas.redisWorks) break;
      const batch = due.slice(first, first + JOINING_AT_A_TIME);
      await Promise.all(batch.map(([apiKey, account]) => join(apiKey, account)));
    }
    if (!due.some(([, account]) => isDue(account))) pausesToldAfter = outage;
  }

  function isDue(account: Account): boolean {
    const { alone, latest } = account;
    return alone !== undefined || (latest !== undefined && hadOutage(account) && pauseLeftMs(latest) > 0);
  }

  async function join(apiKey: string, account: Account): Promise<void> {
    // It may have joined or been forgotten while others were waited for.
    if (account.exchanging > 0 || !isKept(apiKey, account) || !isDue(account)) return;
    if (hasSpentShare(account) && !hasUntold(account)) return;
    if (account.joining) return account.joining;
    account.askedAtMs = ownTime.elapsed();
    account.joining = exchangeOnce(apiKey, account, { reports: [], wanted: 0 }).then(
      () => {},
      // Whoever asks for it next meets the same, and is told.
      () => {},
    );
    await account.joining;
    account.joining = undefined;
  }

  /** Whoever only looks has none that is kept: keys that somebody made up take no room. */
  function accountOf(apiKey: string, { wanted, reports }: Exchange): Account {
    const account = accounts.get(apiKey) ?? newAccount();
    if (wanted > 0 || reports.length > 0) accounts.set(apiKey, account);
    account.usedAtMs = clock.elapsed();
    account.askedAtMs = ownTime.elapsed();
    return account;
  }

  /** Of those that only look nothing is kept. */
  function isKept(apiKey: string, account: Account): boolean {
    return accounts.get(apiKey) === account;
  }

  /**
   * Whether its share of a window is spent. Others may be about to spend theirs, and then this window is used up, which would
   * be found out by a call too many: it calls again where the window ends. What it has spent it tells before.
   */
  function hasSpentShare({ alone }: Account): boolean {
    if (!alone || alone.started === 0 || alone.minute.mode !== 'told') return false;
    return alone.minute.ceiling <= alone.started && now() < alone.minute.resetAtMs;
  }

  function hasUntold({ alone, toldAlone }: Account): boolean {
    return alone !== undefined && alone.started > toldAlone;
  }

  /** What it has spent alone, so that the others do not spend it again. It stays alone. */
  async function tellAlone(apiKey: string, account: Account): Promise<void> {
    const { alone } = account;
    if (!alone || !hasUntold(account)) return;
    try {
      const reports = await unansweredGrants(apiKey, account);
      const telling = { reports: [...reports, memoryReport(alone, account)], wanted: 0 };
      const attempt = newAttempt(account, telling);
      const { outage } = replicas;
      settle(account, telling, await exchangeInsisting(apiKey, account, attempt));
      Object.assign(account, { outage, toldAlone: attempt.startedAlone });
    } catch (error) {
      if (!(error instanceof RedisAway)) throw error;
      replicas.redisFailed(error);
    }
  }

  async function exchangeShared(apiKey: string, account: Account, request: Exchange): Promise<Standing> {
    const reports = [...request.reports, ...(await unansweredGrants(apiKey, account))];
    const { alone: own, latest, underWay } = account;
    const { outage } = replicas;
    if (own) reports.push(memoryReport(withReports(own, request), account));
    else if (hadOutage(account) && isKept(apiKey, account)) reports.push(outageReport(account));
    const standing = await exchangeInsisting(apiKey, account, newAttempt(account, { ...request, reports }));
    Object.assign(account, { alone: undefined, toldAlone: 0, outage });
    lonely.delete(apiKey);
    settle(account, request, standing);
    const isBehind = latest !== undefined && !own && lacks(standing, latest);
    // Another may have taken Redis's place while it was asked, and have answered without a word of that.
    const wasReplaced = hadOutage(account) && isKept(apiKey, account);
    if (!isBehind && !wasReplaced) return standing;
    try {
      return await tellAgain(apiKey, account, { standing, latest, wanted: request.wanted });
    } catch (error) {
      // It is still to be told, and what is asked for now is asked for again.
      Object.assign(account, { latest, underWay });
      throw error;
    }
  }

  /**
   * Redis has lost its state, or the last of it. What is remembered here makes up for it as far as it goes. What it has granted
   * without knowing of that is given back: it may be in a pause, or of a day that is used up.
   */
  async function tellAgain(apiKey: string, account: Account, { standing, latest, wanted }: Behind): Promise<Standing> {
    const granted = standing.grants.map(returned);
    const missing = latest ? missingFrom(standing, latest.standing) : 0;
    const { outage } = replicas;
    const memory: Memory = {
      ...(latest ? spent(latest) : NOTHING_SPENT),
      ...(latest && missing > 0 ? minuteLeft(latest) : {}),
      ...outageOf(account),
      calls: 0,
      underWay: Math.min(missing, account.underWay - granted.length),
    };
    const telling: Exchange = { reports: [...granted, { kind: 'adopted', ...memory }], wanted };
    const restored = await exchangeInsisting(apiKey, account, newAttempt(account, telling));
    account.outage = outage;
    settle(account, telling, restored);
    return restored;
  }

  /**
   * Asks once more for the exchange that was not answered, and gives back what it was granted. What was spent alone, and told
   * by it, is told by then, whether it had been carried out before or not.
   */
  async function unansweredGrants(apiKey: string, account: Account): Promise<Report[]> {
    const { unanswered } = account;
    account.unanswered = undefined;
    if (!unanswered || clock.elapsed() - unanswered.atMs > ASKED_AGAIN_WITHIN_MS) return [];
    const standing = await exchangeInsisting(apiKey, account, unanswered);
    if (unanswered.request.reports.some(({ kind }) => kind === 'adopted')) {
      account.latest = { standing, atMs: clock.elapsed() };
      account.toldAlone = unanswered.startedAlone;
    }
    return standing.grants.map(returned);
  }

  /** Under one id, so that an exchange whose answer was lost is not carried out twice. */
  async function exchangeInsisting(apiKey: string, account: Account, attempt: Attempt): Promise<Standing> {
    const { request, id, atMs } = attempt;
    const aged = () => (clock.elapsed() > atMs ? agedExchange(request, clock.elapsed() - atMs) : request);
    const standing = await insist(() => shared.exchange(apiKey, aged(), id), {
      ownTime,
      // What went before in the same exchange has had its part of the time.
      sinceMs: account.askedAtMs,
      onFailure() {
        account.unanswered = attempt;
      },
    });
    account.unanswered = undefined;
    return standing;
  }

  function newAttempt({ alone }: Account, request: Exchange): Attempt {
    return { id: randomUUID(), request, atMs: clock.elapsed(), startedAlone: alone?.started ?? 0 };
  }

  function settle(account: Account, { reports }: Exchange, standing: Standing): void {
    noteReports(account, reports);
    account.underWay += standing.grants.length;
    // Nothing is kept of this caller, so that there is nothing that Redis could lose.
    if (standing.generation !== '') account.latest = { standing, atMs: clock.elapsed() };
  }

  function noteReports(account: Account, reports: readonly Report[]): void {
    const generation = account.latest?.standing.generation;
    const done = reports.filter((report) => report.kind !== 'adopted' && report.grant.generation === generation);
    account.underWay = Math.max(0, account.underWay - done.length);
  }

  function exchangeAlone(apiKey: string, account: Account, request: Exchange): Standing {
    noteReports(account, request.reports);
    account.alone ??= newAlone(account);
    noteAlone(apiKey, account);
    const asked = { ...request, wanted: Math.min(request.wanted, ALONE_AT_A_TIME) };
    const standing = exchange(account.alone, asked, rules, now());
    // Redis may be back sooner than a window is over.
    return { ...standing, waitMs: Math.min(standing.waitMs, ALONE_GOOD_MS), atATime: ALONE_AT_A_TIME };
  }

  function noteAlone(apiKey: string, account: Account): void {
    if (!isKept(apiKey, account)) return;
    lonely.delete(apiKey);
    lonely.set(apiKey, account);
    const [longestAgo = apiKey] = lonely.keys();
    if (lonely.size <= MOST_ALONE) return;
    lonely.delete(longestAgo);
    accounts.delete(longestAgo);
  }

  function newAlone({ latest }: Account): LedgerState {
    const known = latest && agedStanding(latest.standing, clock.elapsed() - latest.atMs);
    const others = Math.max(FEWEST_REPLICAS, replicas.most ?? UNSEEN_REPLICAS);
    return newStateAlone(randomUUID(), rules, known, { replicas: others, nowMs: now() });
  }

  /** Its last calls are answered in the exchange with which it joins; on a copy, since that exchange may fail. */
  function withReports(alone: LedgerState, { reports }: Exchange): LedgerState {
    const copy = structuredClone(alone);
    exchange(copy, { reports, wanted: 0 }, rules, now());
    return copy;
  }

  /** What the shared ledger has to know of the time alone, and has not been told. */
  function memoryReport(alone: LedgerState, account: Account): Report {
    const { latest, toldAlone } = account;
    const untold = alone.started - toldAlone;
    const unanswered = Object.values(alone.unanswered).reduce((total, starts) => total + starts, 0);
    const underWay = Math.min(untold, unanswered);
    const before = latest ? spent(latest) : NOTHING_SPENT;
    const lately = Math.min(untold, startedWithin(alone, 'minute'));
    const today = Math.min(untold, startedWithin(alone, 'day'));
    return {
      kind: 'adopted',
      ...before,
      ...planOf(alone),
      ...resetOf(alone.day, alone.day.resetAtMs - now()),
      ...(untold > 0 ? minuteToldOf(alone, unanswered) : {}),
      ...outageOf(account),
      // What was started before the day's reset is no part of this day, though perhaps of this minute.
      calls: Math.max(0, Math.max(lately, today) - underWay),
      underWay,
      minuteUsed: before.minuteUsed + lately,
      dayUsed: before.dayUsed + today,
      pausedForMs: Math.max(before.pausedForMs, alone.pausedUntilMs - now(), 0),
      refusedLately: before.refusedLately || refusedLately(alone, now()),
    };
  }

  function minuteToldOf({ minute }: LedgerState, unanswered: number): Pick<Memory, 'minuteTold'> {
    const inMs = minute.resetAtMs - now();
    if (minute.mode !== 'told' || inMs <= 0) return {};
    return { minuteTold: { remaining: Math.max(0, minute.leastLeft - unanswered), inMs, id: minute.resetId } };
  }

  function minuteLeft({ standing, atMs }: Heard): Pick<Memory, 'minuteTold'> {
    const { mode, remaining, resetInMs, resetId } = agedStanding(standing, clock.elapsed() - atMs).minute;
    return mode === 'told' ? { minuteTold: { remaining, inMs: resetInMs, id: resetId } } : {};
  }

  /** Whether it has not heard of all that was known before. Nobody ends a pause, and starts are never taken back. */
  function lacks(standing: Standing, latest: Heard): boolean {
    if (missingFrom(standing, latest.standing) > 0) return true;
    return pauseLeftMs(latest) - standing.pausedForMs > LATE_ANSWER_MS;
  }

  function pauseLeftMs({ standing, atMs }: Heard): number {
    return Math.max(0, standing.pausedForMs - (clock.elapsed() - atMs));
  }

  /** Whether others may have called with it, alone, since Redis heard of it from here. */
  function hadOutage({ outage }: Account): boolean {
    return replicas.outage !== outage;
  }

  /** What may have been lost in an outage. What was left of the minute it does not tell: others know better by now. */
  function outageReport(account: Account): Report {
    const { latest } = account;
    const before = latest ? spent(latest) : NOTHING_SPENT;
    return { kind: 'adopted', calls: 0, underWay: 0, ...before, ...outageOf(account) };
  }

  function outageOf(account: Account): Pick<Memory, 'awayForMs'> {
    if (!replicas.outage || !hadOutage(account)) return {};
    return { awayForMs: Math.max(0, replicas.outage.agoMs() - CLOCKS_APART_MS) };
  }

  function spent({ standing, atMs }: Heard): Past {
    const ageMs = clock.elapsed() - atMs;
    const {
      generation,
      started,
      minute,
      day,
      dayFreeInMs,
      pausedForMs,
      refusedLately: lately,
    } = agedStanding(standing, ageMs);
    const minuteUsed = minute.mode === 'unknown' || ageMs > LONGEST_MINUTE_MS ? 0 : minute.used;
    const ofDay =
      day.mode === 'told'
        ? { dayUsed: day.used, ...resetOf(day, day.resetInMs) }
        : { dayUsed: dayFreeInMs > 0 ? day.used : 0, dayFreeInMs };
    const known = { ...planOf(standing), knownOf: { generation, started } };
    return { ...known, minuteUsed, ...ofDay, pausedForMs, refusedLately: lately };
  }

  function forget(): void {
    const longAgoMs = clock.elapsed() - FORGOTTEN_AFTER_MS;
    let paused = 0;
    for (const [apiKey, { usedAtMs, alone, latest }] of accounts) {
      if (usedAtMs >= longAgoMs || alone) continue;
      // Whoever calls in a pause that Redis has lost may be banned.
      if (latest && pauseLeftMs(latest) > 0 && (paused += 1) <= MOST_PAUSED) continue;
      accounts.delete(apiKey);
    }
  }
}

function returned(grant: Grant): Report {
  return { kind: 'returned', grant };
}

/** How many of the starts that were known of before it does not know, at most: another Redis may not have heard the last of it. */
function missingFrom({ generation, started, grants }: Standing, before: Standing): number {
  return generation === before.generation ? Math.max(0, before.started - started + grants.length) : Infinity;
}

function planOf({ planKnown, minute, day }: LedgerState | Standing): Pick<Memory, 'plan'> {
  return planKnown ? { plan: { perMinute: minute.limit, perDay: day.limit } } : {};
}

function resetOf({ mode, resetId }: WindowState | WindowStanding, inMs: number): Pick<Memory, 'dayReset'> {
  return mode === 'told' && inMs > 0 ? { dayReset: { inMs, id: resetId } } : {};
}

function newAccount(): Account {
  return {
    latest: undefined,
    underWay: 0,
    outage: undefined,
    alone: undefined,
    unanswered: undefined,
    toldAlone: 0,
    usedAtMs: 0,
    askedAtMs: 0,
    exchanging: 0,
    joining: undefined,
  };
}
