import type { CallerRequest } from '../common/caller-request.ts';
import type { KeyLog } from '../common/log.ts';
import { DAY_MS, MINUTE_MS } from '../common/plan.ts';
import type { Taken } from '../quota/account/account.ts';
import type { CallEnd } from '../quota/account/call-end.ts';
import type { QuotaState } from '../quota/account/quota-state.ts';
import type { Refusal } from './refusal.ts';
import type { LineAnswer, LineCall, RequestClaim } from './line-call.ts';

/** A probe after a 429 that fails is another incident. */
const WHY_PAUSED: Partial<Record<CallEnd['kind'], string>> = {
  'rate-limited': 'answered 429',
  failed: 'failed a probe after a 429',
  lost: 'did not answer a probe after a 429',
};

/** Logs what is decided about the calls of one key. A line that nobody reads is not built. */
export class Decisions {
  readonly #log: KeyLog;
  /** How many incidents in a row are logged. */
  #loggedIncidents = 0;
  /** What the log says of the latest one. */
  #latest429: object | undefined;
  #isUnreadableLogged = false;
  #isOutgrownLogged = false;
  /** When it was logged last, by `clock.elapsed()`. */
  readonly #othersLoggedAtMs = { minute: -Infinity, day: -Infinity };

  constructor(log: KeyLog) {
    this.#log = log;
  }

  logTaken(wanted: number, { permits, wait }: Taken): void {
    const [permit] = permits;
    if (wait) this.#log.debug?.({ wanted, granted: permits.length, ...wait }, 'calls wait');
    if (permit?.isTrial) this.#log.debug?.({ isAfter429: permit.isProbe }, 'probe');
  }

  logCall({ name, isRetry }: LineCall, { id, operation }: CallerRequest, waitedMs: number): void {
    this.#log.debug?.({ request: id, operation, call: name, waitedMs }, isRetry ? 'retry' : 'call');
  }

  /** Logs a response that is no success, or a call without one. */
  logFailure({ name }: LineCall, requestId: string, { failure, sent, status }: LineAnswer, tookMs: number): void {
    if (!failure) return;
    if (status === 429) this.#latest429 = failure;
    this.#log.debug?.({ request: requestId, call: name, status, ...failure, sent, tookMs }, 'call failed');
  }

  logRefusedWrite({ name }: LineCall, { request }: RequestClaim, { reason, window }: Refusal): void {
    this.#log.debug?.({ request: request.id, call: name, reason, window }, 'write refused');
  }

  /**
   * Warns once of each incident in a row, however many calls met it.
   *
   * @param state after the settlement of the call that ended so.
   */
  warnOfPause(state: QuotaState | undefined, end: CallEnd): void {
    const before = this.#loggedIncidents;
    this.#loggedIncidents = state?.incidents ?? 0;
    if (!state || state.incidents <= before) return;

    const { incidents, pausedForMs, mayBeBanned, plan, minute, day, learned } = state;
    // This settlement may be the first that sees a pause by another replica.
    const what = WHY_PAUSED[end.kind] ?? 'rejected a call of another replica';
    const why = mayBeBanned ? 'rejected the key after a 429, which may be a ban' : what;
    const retryAfterMs = end.kind === 'rate-limited' ? end.retryAfterMs : undefined;
    const headers = 'headers' in end ? end.headers : undefined;
    this.#log.warn(
      {
        incidents,
        pausedForMs,
        retryAfterMs,
        plan,
        minute: countOf(minute),
        day: countOf(day),
        headers,
        ...learned,
        ...(end.kind === 'rate-limited' && this.#latest429),
      },
      `the pet API ${why}; the key is paused`,
    );
  }

  /** Warns once that petql cannot know the plan: the key is held to the smallest one. */
  warnOfUnreadable(state: QuotaState | undefined, end: CallEnd): void {
    if (this.#isUnreadableLogged || end.kind !== 'succeeded' || !end.isProof || end.headers || !state) return;
    if (state.plan !== undefined) return;
    this.#isUnreadableLogged = true;
    const { minute, day } = state;
    const message =
      'the rate-limit headers of the pet API cannot be read; petql assumes a plan, unless --plan names it';
    this.#log.warn({ minute: minute.limit, day: day.limit }, message);
  }

  /** Warns once that headers tell of more than the configured plan: they are counted by. */
  warnOfOutgrownPlan(state: QuotaState | undefined): void {
    const configured = this.#isOutgrownLogged ? undefined : state?.outgrownPlan;
    if (!state || configured === undefined) return;
    this.#isOutgrownLogged = true;
    const { minute, day } = state;
    const message =
      'the pet API tells of more calls than --plan, and petql counts by them; --plan-share leaves a part to others';
    this.#log.warn({ configured, minute: minute.limit, day: day.limit }, message);
  }

  /** Warns once in a window that other clients use a part of petql's share. */
  warnOfOthers(state: QuotaState | undefined, elapsedMs: number): void {
    for (const [window, lengthMs] of [
      ['minute', MINUTE_MS],
      ['day', DAY_MS],
    ] as const) {
      const { limit = 0, takenByOthers = 0 } = state?.[window] ?? {};
      if (takenByOthers === 0 || elapsedMs < this.#othersLoggedAtMs[window] + lengthMs) continue;
      this.#othersLoggedAtMs[window] = elapsedMs;
      const message = 'other clients use more of the API key than petql leaves them';
      this.#log.warn({ window, share: limit, takenByOthers }, message);
    }
  }
}

/** By petql's own count. */
function countOf({ used, limit, isKnown }: QuotaState['day']): string {
  return `${used} of ${limit}${isKnown ? '' : ' (assumed)'}`;
}
