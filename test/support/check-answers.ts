import { NEVER_LATE, createFaults } from './faults.ts';
import type { FaultKind, Faults, Lateness } from './faults.ts';
import type { Operation } from './operation.ts';
import { Tally } from './tally.ts';
import type { Row } from './tally.ts';

/** Looks at what happened, and knows nothing of how petql works. */
export interface Check {
  readonly rows: readonly Row[];
  /** An operation is over. */
  readonly see?: (operation: Operation) => void;
  /** All is over. */
  readonly finish?: () => void;
}

export interface AnswerRules {
  readonly faults?: Faults | undefined;
  readonly lateness?: Lateness;
  /** How long a call that was begun in time may take. Default: deadlines are not judged. */
  readonly upstreamTimeoutMs?: number;
}

/** Beyond the wait and the call: the other replicas hear of a create within half a second, and two cores run everything. */
const SLACK_MS = 1_000;
/** Requests that come so soon before SIGTERM may meet it on their way. */
const ON_ITS_WAY_MS = 250;
/** What a fault has begun may take so long to show. */
export const AFTERMATH_MS = 3_000;
/** A replica that was stopped reads so late what comes after it goes on: first it has all that came meanwhile. */
const CATCH_UP_MS = 1_000;
/** On a machine that is kept so long from its work, half a second is soon over for Redis, and the upstream is slow too. */
export const BUSY_MS = 500;

/** Codes of the contract, and which faults explain them; undefined where none is needed. */
const CODES: Readonly<Record<string, readonly FaultKind[] | undefined>> = {
  RATE_LIMITED: undefined,
  // These are held against the history of the creates.
  OUTCOME_UNKNOWN: undefined,
  OUTCOME_PENDING: undefined,
  // Only where the request says only-if-cached.
  NOT_CACHED: [],
  FORBIDDEN: [],
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

/** Each operation is answered, in time, and with errors that the contract knows and that have a cause. */
export function createAnswerCheck(rules: AnswerRules = {}): Check {
  const { faults = createFaults(), lateness = NEVER_LATE, upstreamTimeoutMs = Infinity } = rules;
  const answered = new Tally('every operation is answered');
  const inTime = new Tally('inside its deadline');
  const contract = new Tally("errors are the contract's");
  const caused = new Tally('errors have a cause');
  let slowestMs = 0;

  return {
    rows: [answered, inTime, contract, caused],
    see(operation) {
      if (operation.outcome.kind === 'answered') seeTime(operation);
      else seeLoss(operation);
      seeErrors(operation);
    },
  };

  function seeLoss(operation: Operation): void {
    const { outcome, replica, startedMs, endedMs } = operation;
    if (outcome.kind === 'left') return answered.look();
    const span = { fromMs: startedMs, untilMs: endedMs };
    const soon = { fromMs: startedMs, untilMs: startedMs + ON_ITS_WAY_MS };
    const isTouched = (kinds: readonly FaultKind[], when = span) => faults.touching(kinds, when, replica).length > 0;
    // A process that stops waits seven seconds for calls in flight, and a busy machine may need more for it.
    const isStarved = lateness.during(span, replica) > BUSY_MS && isTouched(['stopping']);
    // A process that was frozen finds that its connections have been idle for too long, before it looks at them.
    const isExplained = isTouched(['killed', 'frozen']) || isTouched(['stopping'], soon) || isStarved;
    const reason = outcome.kind === 'lost' ? outcome.reason : `no response in ${Math.round(endedMs - startedMs)} ms`;
    answered.look(`${nameOf(operation)}: ${reason}`, outcome.kind === 'lost' && isExplained);
  }

  function seeTime(operation: Operation): void {
    const { replica, startedMs, endedMs, waitMs = Infinity } = operation;
    answered.look();
    slowestMs = Math.max(slowestMs, endedMs - startedMs);
    inTime.measured = `slowest ${Math.round(slowestMs)} ms`;
    const beyondMs = Math.round(endedMs - startedMs - waitMs - upstreamTimeoutMs);
    const isFrozen = faults.touching(['frozen'], { fromMs: startedMs - CATCH_UP_MS, untilMs: endedMs }, replica);
    // It wanted to run, and the machine ran others.
    const isLate = beyondMs <= SLACK_MS + lateness.during({ fromMs: startedMs, untilMs: endedMs }, replica);
    const problem = `${nameOf(operation)}: answered ${beyondMs} ms after its deadline and a call's time`;
    inTime.look(beyondMs > SLACK_MS ? problem : undefined, isFrozen.length > 0 || isLate);
  }

  function seeErrors(operation: Operation): void {
    const { outcome, expected = [], cacheControl, replica, startedMs, endedMs } = operation;
    if (outcome.kind !== 'answered') return;
    const { errors = [] } = outcome.answer;
    const codes = new Set(errors.map(({ extensions }) => extensions?.code ?? 'no code'));
    const isStatus = HTTP_STATUSES.has(outcome.httpStatus);
    contract.look(isStatus ? undefined : `${nameOf(operation)}: HTTP ${outcome.httpStatus}`);
    if (expected.length > 0 && codes.size === 0) caused.look(`${nameOf(operation)}: expected ${expected.join(' or ')}`);
    for (const code of codes) {
      const text = `${code}: ${errors[0]?.message}`;
      contract.look(code in CODES ? undefined : `${nameOf(operation)}: ${text}`);
      const causes = CODES[code];
      const isExpected = expected.includes(code) || (code === 'NOT_CACHED' && cacheControl?.onlyIfCached);
      const span = { fromMs: startedMs - AFTERMATH_MS, untilMs: endedMs };
      const isBusy = causes !== undefined && causes.length > 0 && lateness.during(span, replica) > BUSY_MS;
      const isExplained = causes !== undefined && faults.touching(causes, span, replica).length > 0;
      const problem = !isExpected && causes ? `${nameOf(operation)}: ${text} in a quiet time` : undefined;
      caused.look(problem, isExplained || isBusy);
    }
  }
}

export function nameOf({ key, replica = 0, life = 0, fields, startedMs }: Operation): string {
  const what = fields.map(({ kind }) => kind).join('+') || 'nothing';
  return `${Math.round(startedMs)} ms, ${key} at replica ${replica}.${life}, ${what}`;
}
