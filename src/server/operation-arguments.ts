import { shownValue } from '../shown-value.ts';
import { typeName } from '../type-name.ts';
import type { Operation } from './operation.ts';

/**
 * Checks what `execute` was given, since types bind nobody who calls it from JavaScript. The document is checked where its text
 * is made. Variables and operation names may come from a visitor as they stand: those are errors in the answer, as over HTTP.
 *
 * @throws TypeError that names every wrong argument, and never repeats an API key.
 */
export function checkArguments(operation: unknown): void {
  if (typeName(operation) !== 'object') {
    throw new TypeError(`execute: expected an operation as an object, got ${typeName(operation)}`);
  }
  const problems: string[] = [];
  for (const [name, { expected, fits, secret }] of ARGUMENTS) {
    const given = (operation as Record<string, unknown>)[name];
    if (given === undefined || given === null || fits(given)) continue;
    problems.push(`${name}: expected ${expected}, got ${secret ? typeName(given) : shownValue(given)}`);
  }
  if (problems.length > 0) throw new TypeError(`execute: ${problems.join('; ')}`);
}

interface Argument {
  readonly expected: string;
  fits(given: unknown): boolean;
  /** Whether its value is never repeated. */
  readonly secret?: boolean;
}

type CheckedName = Exclude<keyof Operation<unknown, unknown>, 'document' | 'operationName' | 'variables'>;

const TEXT: Pick<Argument, 'fits'> = { fits: (given) => typeof given === 'string' };

const ARGUMENTS = Object.entries<Argument>({
  apiKey: { expected: 'a string', ...TEXT, secret: true },
  waitMs: { expected: 'milliseconds from 0', fits: (given) => typeof given === 'number' && given >= 0 },
  signal: { expected: 'an AbortSignal', fits: isSignal },
  cacheControl: { expected: 'a text such as max-age=5', ...TEXT },
  traceparent: { expected: 'the text of a traceparent header', ...TEXT },
  dryRun: { expected: 'true or false', fits: (given) => typeof given === 'boolean' },
} satisfies Record<CheckedName, Argument>);

/** By what is used of it: those of jsdom and of other realms are of another class. */
function isSignal(given: unknown): boolean {
  const { throwIfAborted, addEventListener } = given as Partial<AbortSignal>;
  return typeof throwIfAborted === 'function' && typeof addEventListener === 'function';
}
