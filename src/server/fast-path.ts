import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { ExecutionResult, GraphQLError, OperationDefinitionNode } from 'graphql';
import type { Caller, Callers } from '../caller/callers.ts';
import { usageJson } from '../caller/usage.ts';
import { PetqlError } from '../errors.ts';
import { readTraceContext } from '../trace-context.ts';
import { MOST_CHARACTERS, answerTooLong } from './answer-limit.ts';
import { answerStatus, setAnswerHeaders, storageHeaders } from './answer-headers.ts';
import { answerType } from './answer-type.ts';
import type { CompiledResult } from './compiled-operation.ts';
import type { Cors } from './cors.ts';
import { plainError } from './error-answers.ts';
import type { OperationReports, RunningOperation } from './operation-reports.ts';
import { createPreparation } from './prepared-operations.ts';
import type { PreparationOptions, Prepared } from './prepared-operations.ts';
import type { Account, WrittenData } from './remembered-answers.ts';
import type { CreateRequestContext, RequestContext } from './request-context.ts';
import { headerTerms } from './request-terms.ts';
import type { TermsHeaders, TermsOptions } from './request-terms.ts';
import { SECURITY_HEADERS } from './security-headers.ts';

/** An answer as it goes out. */
export interface FastAnswer {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: string;
  /** Its length in UTF-8. */
  readonly bytes: number;
}

/**
 * Answers the requests that there are most of, queries in JSON, with nothing between them and Node's http: no Request, no
 * Response and no tree of results. It answers exactly what the GraphQL server would, or undefined where the request is
 * one of the others, which are the server's.
 */
export type FastPath = (request: FastRequest) => FastAnswer | Promise<FastAnswer | undefined> | undefined;

export interface FastRequest {
  readonly incoming: Pick<IncomingMessage, 'headers' | 'method' | 'rawHeaders'>;
  /** With its query. */
  readonly path: string;
  readonly body: Buffer;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: () => AbortSignal;
}

export interface FastPathOptions extends Omit<TermsOptions, 'trace'>, PreparationOptions {
  readonly endpoint: string;
  readonly callers: Pick<Callers, 'withKey'>;
  readonly requestContext: CreateRequestContext;
  maskError(error: unknown): GraphQLError;
  readonly reports: OperationReports;
  readonly cors: Cors;
  /** Whether no document runs but the trusted ones, which the server knows. */
  readonly requireTrusted: boolean;
}

export function createFastPath(options: FastPathOptions): FastPath {
  const { endpoint, callers, requestContext, maskError, reports, cors, serverKey, heedCacheControl, requireTrusted } =
    options;
  // What finds the server's key takes a Request.
  if (requireTrusted || typeof serverKey === 'function') return () => undefined;
  const prepared = createPreparation(options);

  // Queries change nothing: one that fails as nobody foresaw is run again by the server, which knows what to say then.
  return (request) => {
    try {
      const answered = tryAnswer(request);
      return answered instanceof Promise ? answered.catch(() => undefined) : answered;
    } catch {
      return undefined;
    }
  };

  function tryAnswer({ incoming, path, body, signal }: FastRequest): FastAnswer | Promise<FastAnswer> | undefined {
    const { headers } = incoming;
    if (incoming.method !== 'POST' || path !== endpoint || headers['petql-dry-run'] !== undefined) return undefined;
    const type = answerType(headers.accept);
    if (!type || !isJson(headers['content-type']) || isDoubled(incoming.rawHeaders)) return undefined;
    const ready = prepared(body);
    if (!ready) return undefined;
    const { traceparent, tracestate, origin = null } = headers;
    const begin = () =>
      reports.begin(readTraceContext(traceparent as string | undefined, tracestate as string | undefined));
    let running: RunningOperation | undefined;
    const trace = () => running?.span.trace;
    const terms = headerTerms(termsHeaders(headers), { serverKey, heedCacheControl, signal, trace });
    const { apiKey, cacheControl } = terms;
    if (apiKey instanceof PetqlError) return undefined;
    const caller = callers.withKey(apiKey);
    const { definition, answers } = ready;
    const remembered = answers.find(caller, cacheControl);
    if (remembered) {
      const asked = { definition, running: begin(), account: remembered, type, origin };
      return answer(remembered.data, NO_ERRORS, asked);
    }
    const context = requestContext(terms, caller);
    if (context.refusal) return undefined;
    // From here on it is answered here.
    running = begin();
    return run(ready, caller, { definition, running, account: context, type, origin });
  }

  function run({ run: runWith, answers }: Prepared, caller: Caller, asked: Asked<RequestContext>) {
    const { account: context, running } = asked;
    try {
      const result = runWith(context);
      if (result instanceof Promise) {
        return result
          .then((come) => answer(...written(come), asked))
          .catch((fault: unknown) => givenUp(fault, running));
      }
      const [data, errors] = written(result);
      const reads = errors.length === 0 ? context.freshReads() : undefined;
      if (reads) answers.keep(caller, data, reads);
      return answer(data, errors, asked);
    } catch (fault) {
      return givenUp(fault, running);
    }
  }

  function givenUp(fault: unknown, running: RunningOperation): never {
    reports.givenUp(running);
    throw fault;
  }

  function answer(data: WrittenData, errors: readonly GraphQLError[], asked: Asked): FastAnswer {
    const { definition, running, account, type, origin } = asked;
    const usage = account.usage();
    const masked = errors.length > 0 ? errors.map(maskError) : NO_ERRORS;
    const result: ExecutionResult =
      masked.length > 0
        ? { data: JSON.parse(data.json) as NonNullable<ExecutionResult['data']>, errors: masked }
        : NOTHING_WRONG;
    const storage = storageHeaders(usage.oldestAgeMs !== undefined);
    const granted = cors.headers(origin);
    const headers = ['content-type', type, 'x-request-id', running.id, ...SECURITY_LIST];
    setAnswerHeaders((name, value) => headers.push(name, value), result, { budget: account.latestBudget(), usage });
    for (const name in granted) if (name !== 'vary') headers.push(name, granted[name] as string);
    const vary = granted['vary'] === undefined ? storage.vary : `${storage.vary}, ${granted['vary']}`;
    headers.push('cache-control', storage['cache-control'], 'vary', vary);
    const before = masked.length > 0 ? `{"errors":${JSON.stringify(masked.map(plainError))},"data":` : '{"data":';
    const after = `,"extensions":{"petql":${usageJson(usage)}}}`;
    const answered: FastAnswer = {
      status: answerStatus(result) ?? 200,
      headers,
      body: before + data.json + after,
      bytes: Buffer.byteLength(before) + data.bytes + Buffer.byteLength(after),
    };
    // Last: whatever failed before this is run again by the server, and counted there.
    account.countSaved();
    reports.end(running, definition, { errors: masked, extensions: { petql: usage } });
    return answered;
  }
}

function written({ data, errors }: CompiledResult): readonly [data: WrittenData, errors: readonly GraphQLError[]] {
  // V8 has put no characters together so far: it does that for what asks for them, as the next line does.
  if (data.length > MOST_CHARACTERS) return [NO_DATA, [answerTooLong()]];
  return [{ json: data, bytes: Buffer.byteLength(data) }, errors];
}

const NO_DATA: WrittenData = { json: 'null', bytes: 4 };

/** A request on its way to its answer. */
interface Asked<A extends Account = Account> {
  readonly definition: OperationDefinitionNode;
  readonly running: RunningOperation;
  readonly account: A;
  /** The content type of the answer. */
  readonly type: string;
  /** The page's, where a browser sent it for one. */
  readonly origin: string | null;
}

const SECURITY_LIST: readonly string[] = Object.entries(SECURITY_HEADERS).flat();

const NO_ERRORS: readonly GraphQLError[] = [];
const NOTHING_WRONG: ExecutionResult = {};

function termsHeaders(headers: IncomingHttpHeaders): TermsHeaders {
  const { authorization, 'cache-control': cacheControl, prefer } = headers;
  // Node joins headers that it knows no rule for, so that these are texts.
  return {
    authorization,
    cacheControl,
    prefer: prefer as string | undefined,
    dryRun: undefined,
  };
}

function isJson(type: string | undefined): boolean {
  return type === 'application/json' || /^application\/json; ?charset=utf-8$/i.test(type ?? '');
}

/** Node takes the first of two of these, and would hide that there is a second. */
function isDoubled(rawHeaders: readonly string[]): boolean {
  let keys = 0;
  let types = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const { length } = rawHeaders[index] ?? '';
    // "authorization", and "content-type" with its like.
    if (length === 13 && rawHeaders[index]?.toLowerCase() === 'authorization') keys += 1;
    else if (length === 12 && rawHeaders[index]?.toLowerCase() === 'content-type') types += 1;
  }
  return keys > 1 || types > 1;
}
