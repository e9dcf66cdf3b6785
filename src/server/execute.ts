import { print } from 'graphql';
import type { DocumentNode } from 'graphql';
import type { CheckedOptions } from '../settings/settings.ts';
import { givenApiKey } from './api-key.ts';
import { badRequest } from './errors.ts';
import type { InProcessOptions, Respond } from './http/http-message.ts';
import { jsonBody } from './http/request-body.ts';
import type { RequestBody } from './http/request-body.ts';
import type { Execute, Operation, OperationResult, TypedText } from './operation.ts';

type AnyOperation = Operation<unknown, Record<string, unknown>>;

/** Runs operations in this process, in the same way as over HTTP. */
export function createExecute(respond: Respond, { endpoint, petApiKey, maxBodyBytes }: CheckedOptions): Execute {
  const texts = new WeakMap<object, string>();
  return async <TData>(operation: unknown) => {
    const asked = (operation ?? {}) as AnyOperation;
    const problem = problemOf(asked);
    const given = problem === undefined ? asked : NO_OPERATION;
    const { signal, traceparent } = given;
    signal?.throwIfAborted();
    const response = await respond({
      method: 'POST',
      url: endpoint,
      headers: { 'content-type': 'application/json', traceparent: traceparent ?? undefined },
      body: problem === undefined ? bodyOf(given) : badRequest(problem, 422),
      signal: () => signal ?? undefined,
      isAborted: () => signal?.aborted ?? false,
      toRequest: () => new Request('http://localhost'),
      inProcess: inProcessOptions(given),
    });
    signal?.throwIfAborted();
    return JSON.parse(String(response.body)) as OperationResult<TData>;
  };

  function inProcessOptions({ apiKey, background, ...given }: AnyOperation): InProcessOptions {
    const key = apiKey === undefined && typeof petApiKey === 'string' ? petApiKey : apiKey;
    return {
      apiKey: givenApiKey(key),
      waitMs: given.waitMs ?? undefined,
      cacheControl: given.cacheControl ?? undefined,
      dryRun: given.dryRun ?? false,
      visitor: given.visitor ?? undefined,
      client: given.client ?? undefined,
      isBackground: background ?? false,
    };
  }

  function bodyOf({ document, variables, operationName }: AnyOperation): RequestBody {
    const query = textOf(document);
    if (query === undefined) return badRequest('document must be a text or a parsed GraphQL document.', 422);
    return jsonBody({ query, variables, operationName }, maxBodyBytes);
  }

  /** Undefined for what is no document. */
  function textOf(document: AnyOperation['document']): string | undefined {
    if (typeof document === 'string' || isText(document)) return String(document);
    const known = texts.get(document);
    if (known !== undefined) return known;

    try {
      const text = print(document as DocumentNode);
      texts.set(document, text);
      return text;
    } catch {
      return undefined;
    }
  }
}

function isText(document: object): document is TypedText {
  return Object.prototype.toString.call(document) === '[object String]';
}

const NO_OPERATION: AnyOperation = { document: '' };

type Expectation = readonly [option: keyof AnyOperation, expected: string, isOne: (value: unknown) => boolean];

/** What an option must be where it is not null. Documents, their names and their variables are checked as those of HTTP. */
const EXPECTED: readonly Expectation[] = [
  ['apiKey', 'a text', isString],
  ['background', 'true or false', isBoolean],
  ['cacheControl', 'a text', isString],
  ['client', 'a text', isString],
  ['dryRun', 'true or false', isBoolean],
  ['signal', 'an AbortSignal', isSignal],
  ['traceparent', 'a text', isString],
  ['visitor', 'a text', isString],
  ['waitMs', 'a number of at least 0', isWait],
];

/** Returns what is wrong with an option, for programs without types: execute rejects only when its signal aborts. */
function problemOf(operation: AnyOperation): string | undefined {
  for (const [option, expected, isOne] of EXPECTED) {
    const value: unknown = operation[option];
    if (value === undefined || value === null || isOne(value)) continue;
    // Texts and objects may hold what is personal, or a key.
    return `${option} must be ${expected}, got ${typeof value === 'number' ? value : typeof value}.`;
  }
  return undefined;
}

function isString(value: unknown): boolean {
  return typeof value === 'string';
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean';
}

/** Frameworks and jest have a class of their own. */
function isSignal(value: unknown): boolean {
  return typeof (value as Partial<AbortSignal>).throwIfAborted === 'function';
}

function isWait(value: unknown): boolean {
  return typeof value === 'number' && value >= 0;
}
