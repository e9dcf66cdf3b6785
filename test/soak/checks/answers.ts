import type { DisturbanceKind, Disturbances } from '../disturbances.ts';
import type { Lateness } from '../lateness.ts';
import type { Operation } from '../operation.ts';
import { createTally } from '../tally.ts';
import type { Check } from './check.ts';

export interface AnswerRules {
  readonly disturbances: Disturbances;
  readonly lateness: Pick<Lateness, 'during' | 'longestMs'>;
  /** How long a call that was begun in time may take. */
  readonly upstreamTimeoutMs: number;
}

/**
 * Beyond the wait and the call: 100 ms for what Redis is about to say, half a second until the other replicas are told of a
 * creation; and what a machine of two cores takes that runs everything at once.
 */
export const SLACK_MS = 1_000;
/** Requests that come so soon before SIGTERM may meet it on their way. */
const ON_ITS_WAY_MS = 250;
/** What a fault has begun may take so long to show. */
export const AFTERMATH_MS = 3_000;

/** A replica that was stopped reads so late what comes after it goes on: first it has all that came meanwhile. */
const CATCH_UP_MS = 1_000;

/** On a machine that is kept so long from its work, half a second is soon over for Redis, and the service is slow too. */
export const BUSY_MS = 500;

/** Codes of the contract, and which disturbances explain them; undefined where none is needed. */
const CODES: Readonly<Record<string, readonly DisturbanceKind[] | undefined>> = {
  RATE_LIMITED: undefined,
  // These are held against the creations' history.
  OUTCOME_UNKNOWN: undefined,
  OUTCOME_PENDING: undefined,
  // Only where the request says only-if-cached.
  NOT_CACHED: [],
  DOWNSTREAM_SERVICE_ERROR: ['upstream', 'frozen'],
  GATEWAY_TIMEOUT: ['upstream', 'frozen'],
  IDEMPOTENCY_UNAVAILABLE: ['redis', 'stalled', 'frozen'],
  UNAUTHENTICATED: [],
  BAD_USER_INPUT: [],
  LIMIT_EXCEEDED: [],
  GRAPHQL_PARSE_FAILED: [],
  GRAPHQL_VALIDATION_FAILED: [],
};
const HTTP_STATUSES: ReadonlySet<number> = new Set([200, 400, 401, 504]);

/** Each operation is answered once, in time, and with errors that the contract knows and that have a cause. */
export function createAnswerCheck({ disturbances, lateness, upstreamTimeoutMs }: AnswerRules): Check {
  const answered = createTally('every operation is answered once');
  const inTime = createTally('inside its deadline');
  const contract = createTally("errors are the contract's");
  const caused = createTally('errors have a cause');
  let longestMs = 0;

  return {
    tallies: [answered, inTime, contract, caused],
    see(operation) {
      seeEnd(operation);
      seeErrors(operation);
    },
  };

  function seeEnd(operation: Operation): void {
    const { outcome, replica, startedMs, endedMs, waitMs } = operation;
    if (outcome.kind === 'left') return answered.ok();
    if (outcome.kind === 'hung') return answered.break(`${name(operation)}: no answer in ${endedMs - startedMs} ms`);
    if (outcome.kind === 'lost') {
      // A process that was stopped finds that its connections have been idle for too long, before it looks at them.
      const killed = disturbances.touched(['killed', 'frozen'], { fromMs: startedMs, untilMs: endedMs }, replica);
      const soon = { fromMs: startedMs, untilMs: startedMs + ON_ITS_WAY_MS };
      if (killed || disturbances.touched(['stopping'], soon, replica)) return answered.explain();
      // Who stops waits seven seconds for what is under way, and a machine that is busy may need more for it.
      const span = { fromMs: startedMs, untilMs: endedMs };
      const starved = lateness.during(span, replica) > BUSY_MS;
      if (starved && disturbances.touched(['stopping'], span, replica)) return answered.explain();
      return answered.break(`${name(operation)}: ${outcome.reason}`);
    }
    answered.ok();
    const tookMs = endedMs - startedMs;
    if (disturbances.touched(['frozen'], { fromMs: startedMs - CATCH_UP_MS, untilMs: endedMs }, replica)) {
      return inTime.explain();
    }
    const beyondMs = Math.round(tookMs - waitMs - upstreamTimeoutMs);
    longestMs = Math.max(longestMs, tookMs);
    inTime.measure(`longest ${Math.round(longestMs)} ms; the machine was late by ${Math.round(lateness.longestMs)} ms`);
    if (beyondMs <= SLACK_MS) inTime.ok();
    // It wanted to run, and the machine ran others.
    else if (beyondMs <= SLACK_MS + lateness.during({ fromMs: startedMs, untilMs: endedMs }, replica)) inTime.explain();
    else inTime.break(`${name(operation)}: answered ${beyondMs} ms after its deadline and a call's time`);
  }

  function seeErrors(operation: Operation): void {
    const { outcome, meant, cacheControl, replica, startedMs, endedMs } = operation;
    if (outcome.kind !== 'answered') return;
    const { errors = [] } = outcome.answer;
    const codes = new Set(errors.map(({ extensions }) => extensions?.code ?? 'no code'));
    if (!HTTP_STATUSES.has(outcome.httpStatus)) {
      contract.break(`${name(operation)}: HTTP ${outcome.httpStatus}`);
    }
    if (meant.length > 0 && codes.size === 0) caused.break(`${name(operation)}: expected ${meant.join(' or ')}`);
    for (const code of codes) {
      if (!(code in CODES)) contract.break(`${name(operation)}: ${code}: ${errors[0]?.message}`);
      else contract.ok();
      const causes = CODES[code];
      const span = { fromMs: startedMs - AFTERMATH_MS, untilMs: endedMs };
      if (meant.includes(code) || (code === 'NOT_CACHED' && cacheControl.onlyIfCached)) caused.ok();
      else if (!causes) caused.ok();
      else if (disturbances.touched(causes, span, replica)) caused.explain();
      else if (causes.length > 0 && lateness.during(span, replica) > BUSY_MS) caused.explain();
      else caused.break(`${name(operation)}: ${code} in a quiet time: ${errors[0]?.message}`);
    }
    if (codes.size === 0) contract.ok();
  }
}

export function name({ key, replica, life, asked, startedMs }: Operation): string {
  const what = asked.map(({ kind }) => kind).join('+') || 'nothing';
  return `${Math.round(startedMs)} ms, ${key} at replica ${replica}.${life}, ${what}`;
}
