import { pathToFileURL } from 'node:url';
import { copyPetql } from '../changed-copy.ts';
import type { run } from './laboratory.ts';

/** A rule by which petql makes no call, or uses no data, after something went wrong; and the one line that turns it off. */
export interface Guard {
  readonly rule: string;
  /** Why it is there where no trigger here shows that it saves calls or reads. */
  readonly reason?: string;
  /** In `src`. */
  readonly file: string;
  /** It has to be in the file exactly once. */
  readonly from: string;
  readonly to: string;
}

/** Each guard by itself: `npm run verify -- guards` compares petql with petql without it. */
const LINES = {
  'closed-api': {
    rule: 'after two failed tries of lists, where nothing else works, one call at a time finds out for all',
    file: 'closed/closed-api.ts',
    from: 'const FAILED_TRIES = 2;',
    to: 'const FAILED_TRIES = Infinity;',
  },
  'closed-lists': {
    rule: 'after a list failed twice, reads get calls of their own in place of it',
    file: 'reads/failed-calls.ts',
    from: 'const FAILURES_TO_CLOSE = 2;',
    to: 'const FAILURES_TO_CLOSE = Infinity;',
  },
  'closed-gets': {
    rule: 'after two pets that lists show had no route, one get at a time finds out for the key',
    file: 'closed/closed-for-key.ts',
    from: 'export const PETS_WITHOUT_ROUTE = 2;',
    to: 'export const PETS_WITHOUT_ROUTE = Infinity;',
  },
  'rejected-keys': {
    rule: 'after a 401 the key makes no call for a while, and gets no data',
    file: 'closed/rejected-keys.ts',
    from: 'if (remainingMs <= 0) return undefined;',
    to: 'return undefined;',
  },
  'retry-budget': {
    rule: 'early retries are a tenth of the calls of a key',
    file: 'closed/retry-budget.ts',
    from: 'if (this.#calls < CALLS_PER_RETRY) return false;',
    to: '',
  },
  pause: {
    rule: 'after a 429 nothing is sent before its Retry-After',
    file: 'quota/account/account.ts',
    from: 'pause.untilMs = Math.max(pause.untilMs, nowMs + Math.min(waitMs, MAX_PAUSE_MS));',
    to: '',
  },
  'failed-probe': {
    rule: 'a probe after a 429 that fails is another 429',
    file: 'quota/account/account.ts',
    from: 'if (!permit.isProbe || isOver) return;',
    to: 'return;',
  },
  ban: {
    rule: 'a 401 or 403 to a probe after a 429 may be a ban, which is a longer pause',
    file: 'quota/account/call-end.ts',
    from: 'const mayBeBanned = isRejected && permit.isProbe && isDecisive;',
    to: 'const mayBeBanned = false;',
  },
  generation: {
    rule: 'after a create of which nobody knows the outcome, older data is not used',
    reason: 'clients see what they have created',
    file: 'writes/write-call.ts',
    from: "if (outcome.kind !== 'ok' && !mayHaveHappened(outcome, sent)) return answer;",
    to: "if (outcome.kind !== 'ok') return answer;",
  },
  'return-times': {
    rule: 'refused clients are told different times, as many to a minute as the plan allows',
    reason: 'clients that return find room: test/plan/returns.test.ts',
    file: 'line/return-times.ts',
    from: 'if (isNew) add(',
    to: 'if (false) add(',
  },
  'in-flight': {
    rule: 'a visitor has half of the calls in flight that the others leave',
    reason: 'the others do not wait for calls that hang: test/failures/crowded.test.ts',
    file: 'line/places.ts',
    from: 'return ownTaken === 0 ||',
    to: 'return true ||',
  },
} satisfies Readonly<Record<string, Guard>>;

export type GuardName = keyof typeof LINES;
export const GUARDS: Readonly<Record<GuardName, Guard>> = LINES;
export const GUARD_NAMES = Object.keys(LINES) as readonly GuardName[];

export interface Laboratory extends AsyncDisposable {
  readonly run: typeof run;
}

/** The laboratory over a copy of petql without this guard. */
export async function openWithout(guard: GuardName): Promise<Laboratory> {
  const copy = await copyPetql(GUARDS[guard]);
  const path = `${copy.folder}/test/verify/guards/laboratory.ts`;
  const laboratory = (await import(pathToFileURL(path).href)) as Pick<Laboratory, 'run'>;
  return { run: laboratory.run, [Symbol.asyncDispose]: () => copy[Symbol.asyncDispose]() };
}
