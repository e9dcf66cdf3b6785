import fc from 'fast-check';
import { messages } from './fuzz/messages.ts';
import { startSubject } from './fuzz/subject.ts';
import type { Subject } from './fuzz/subject.ts';
import { wireBytes } from './fuzz/wire-bytes.ts';
import { fuzzWorkTime } from './fuzz/work-time.ts';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import type { Check, Suite } from './suite.ts';

const WORK_TIME = 'the work on a text grows with its length, and no faster';
const GOALS = {
  messages: 'any request is answered as the README says, at the announced cost, without a secret',
  bytes: 'bytes that are hardly HTTP end in a 4xx or a closed connection',
} as const;

export const fuzz: Suite = {
  about: 'requests that nobody would send',
  minutes: 5,
  checks: [
    ...(['messages', 'bytes'] as const).map((kind): Check => {
      return {
        name: kind,
        goal: GOALS[kind],
        run: ({ seed, minutes }) => fuzzFor(kind, { seed, maxMs: minutes * 60_000 }),
      };
    }),
    {
      name: 'work-time',
      goal: WORK_TIME,
      run: ({ seed, minutes }) => fuzzWorkTime(WORK_TIME, { seed, maxMs: minutes * 60_000 }),
    },
  ],
};

/** Kinds of response that a run is worth nothing without. */
const EXPECTED = {
  messages: [
    '200 OK',
    '200 BAD_USER_INPUT',
    '200 GRAPHQL_VALIDATION_FAILED',
    '200 LIMIT_EXCEEDED',
    '401 UNAUTHENTICATED',
  ],
  bytes: ['raw 400', 'raw 200'],
};
const MAX_CASES_FOR_ONE = 500;

export interface FuzzOptions {
  readonly seed: number;
  /** Default: no limit. */
  readonly maxMs?: number;
  /** Default: no limit. */
  readonly maxCases?: number;
}

/** Tries random requests until one breaks a promise or a limit is reached; says the smallest request that breaks it. */
export async function fuzzFor(kind: keyof typeof GOALS, { seed, maxMs, maxCases }: FuzzOptions): Promise<Row[]> {
  const problems: string[] = [];
  const onRejection = (reason: unknown) => problems.push(`unhandled rejection: ${shown(reason)}`);
  process.on('unhandledRejection', onRejection);
  await using resources = new AsyncDisposableStack();
  const subject = await startSubject(resources);
  const details = await fc.check(propertyOf(kind, subject), {
    seed,
    numRuns: maxCases ?? Number.MAX_SAFE_INTEGER,
    ...(maxMs === undefined ? {} : { interruptAfterTimeLimit: maxMs }),
  });
  process.off('unhandledRejection', onRejection);
  if (details.failed) {
    problems.push(
      `after ${details.numRuns} cases and ${details.numShrinks} shrinks, path ${details.counterexamplePath}: ` +
        `${JSON.stringify(details.counterexample, bytesAsText)}\n${shown(details.errorInstance)}`,
    );
  }
  // They are not all refused for one reason.
  const rare = EXPECTED[kind].filter((name) => (subject.kinds.get(name) ?? 0) < details.numRuns / MAX_CASES_FOR_ONE);
  if (rare.length > 0 && problems.length === 0) problems.push(`hardly any response was ${rare.join(' or ')}`);
  const kinds = [...subject.kinds].toSorted(([, one], [, other]) => other - one);
  const answers = kinds.slice(0, 3).map(([name, count]) => `${count} × ${name}`);
  const measured = `${kinds.length} kinds of answer: ${answers.join(', ')}, …; ${subject.calls} calls`;
  return [
    rowOf({ promise: GOALS[kind], looked: details.numRuns, problems, measured, figures: Object.fromEntries(kinds) }),
  ];
}

function propertyOf(kind: keyof typeof GOALS, subject: Subject): fc.IAsyncProperty<unknown> {
  if (kind === 'bytes') return fc.asyncProperty(wireBytes, (bytes) => subject.tryBytes(bytes));
  const where = fc.constantFrom('callers' as const, 'callers' as const, 'callers' as const, 'server' as const);
  return fc.asyncProperty(messages, where, (message, side) => subject.tryMessage(message, side));
}

function shown(reason: unknown): string {
  return String(reason instanceof Error ? reason.stack : reason);
}

function bytesAsText(_key: string, value: unknown): unknown {
  const { type, data } = (value ?? {}) as { type?: unknown; data?: number[] };
  return type === 'Buffer' && data ? Buffer.from(data).toString('latin1') : value;
}
