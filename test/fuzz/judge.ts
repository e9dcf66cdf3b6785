import { isDeepStrictEqual } from 'node:util';
import type { HttpAnswer } from './exchange.ts';

/** Every code but that of faults of petql's own. */
const CODES: ReadonlySet<unknown> = new Set([
  'BAD_USER_INPUT',
  'DOWNSTREAM_SERVICE_ERROR',
  'FORBIDDEN',
  'GATEWAY_TIMEOUT',
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'IDEMPOTENCY_UNAVAILABLE',
  'LIMIT_EXCEEDED',
  'NOT_CACHED',
  'OUTCOME_PENDING',
  'OUTCOME_UNKNOWN',
  'PERSISTED_DOCUMENT_NOT_FOUND',
  'PERSISTED_DOCUMENT_REQUIRED',
  'RATE_LIMITED',
  'UNAUTHENTICATED',
]);
const STATUSES: ReadonlySet<number> = new Set([200, 204, 302, 400, 401, 403, 404, 405, 406, 413, 415, 504]);

/** An operation's result, as far as it is judged. */
interface Result {
  readonly data?: unknown;
  readonly errors?: readonly { readonly message: unknown; readonly extensions?: { readonly code?: unknown } }[];
  readonly extensions?: {
    readonly petql?: { readonly upstreamCalls?: number; readonly dryRun?: { upstreamCalls: number } };
  };
}

/**
 * What kind of answer it is, such as `200 OK` or `400 LIMIT_EXCEEDED`.
 *
 * @throws Error where it is none that petql may give.
 */
export function kindOf({ status, headers, body }: HttpAnswer): string {
  if (!STATUSES.has(status)) throw new Error(`a status that petql does not have: ${status}`);
  if (headers.has('transfer-encoding') && headers.has('content-length')) throw new Error('a body of two lengths');
  const type = headers.get('content-type') ?? '';
  if (!/^application\/(?:graphql-response\+)?json\b/.test(type)) return `${status} ${type.split(';')[0] || 'no body'}`;
  if (body === '') return `${status} no body`;
  const results = [JSON.parse(body) as Result].flat();
  if (results.length === 0) throw new Error('an answer without a result');
  const [first, ...others] = results.map(outcomeOf);
  return `${status} ${first}${others.length > 0 ? ' and others' : ''}`;

  function outcomeOf(result: Result): string {
    // What is no GraphQL says how petql is.
    if ('status' in result) return 'health';
    if (!('data' in result || 'errors' in result)) throw new Error('neither data nor errors');
    if (result.errors === undefined) return 'OK';
    if (result.errors.length === 0) throw new Error('an empty list of errors');
    for (const { message, extensions } of result.errors) {
      if (typeof message !== 'string' || message === '') throw new Error('an error without a message');
      if (!CODES.has(extensions?.code)) throw new Error(`an error with the code ${String(extensions?.code)}`);
    }
    return String(result.errors[0]?.extensions?.code);
  }
}

/** How many calls an answer announces; those of a dry run. */
export function announcedBy({ body }: HttpAnswer): number {
  const result = parsed(body);
  return result?.extensions?.petql?.dryRun?.upstreamCalls ?? 0;
}

/** @throws Error where an answer holds what nobody may see. */
export function expectNoSecret(text: string, secrets: readonly string[]): void {
  for (const secret of secrets) {
    if (secret !== '' && text.includes(secret)) throw new Error(`the answer holds ${JSON.stringify(secret)}`);
  }
  const trace = /\.[cm]?[jt]s:\d+|node_modules|\bat (?:async )?\w+ \(|ECONN\w+|RangeError|TypeError/.exec(text);
  if (trace) throw new Error(`the answer holds ${JSON.stringify(trace[0])}`);
}

/** @throws Error where two answers differ in more than what the time decides. */
export function expectAlike(one: HttpAnswer, other: HttpAnswer): void {
  const [first, second] = [one, other].map(({ status, headers, body }) => ({
    status,
    headers: Object.fromEntries([...headers].filter(([name]) => !OF_THE_MOMENT.has(name))),
    body: body
      .replaceAll(/"(oldestAgeMs|retryAfterMs|waitMs)":\d+/g, '"$1":0')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '')
      .replaceAll(/Content-Length: \d+/g, ''),
  }));
  if (isDeepStrictEqual(first, second)) return;
  throw new Error(`the two ways answer differently: ${JSON.stringify(first)} and ${JSON.stringify(second)}`);
}

const OF_THE_MOMENT: ReadonlySet<string> = new Set([
  'date',
  'x-request-id',
  'content-length',
  'age',
  'x-ratelimit-reset',
]);

function parsed(body: string): Result | undefined {
  try {
    return JSON.parse(body) as Result;
  } catch {
    return undefined;
  }
}
