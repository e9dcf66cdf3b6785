import { print } from 'graphql';
import type { DocumentNode } from 'graphql';
import { shownValue } from '../settings/setting-shapes.ts';
import type { CheckedOptions } from '../settings/settings.ts';
import { givenApiKey } from './api-key.ts';
import { badRequest } from './errors.ts';
import type { Respond } from './http/http-message.ts';
import { jsonBody } from './http/request-body.ts';
import type { RequestBody } from './http/request-body.ts';
import type { Execute, Operation, OperationResult, TypedText } from './operation.ts';

type AnyOperation = Operation<unknown, Record<string, unknown>>;

/** Runs operations in this process, in the same way as over HTTP. */
export function createExecute(respond: Respond, { endpoint, petApiKey, maxBodyBytes }: CheckedOptions): Execute {
  const texts = new WeakMap<object, string>();
  return async <TData>(operation: unknown) => {
    const given = (operation ?? {}) as AnyOperation;
    const { waitMs, signal, cacheControl, dryRun, traceparent, apiKey, visitor, client, background } = given;
    signal?.throwIfAborted();
    const key = apiKey === undefined && typeof petApiKey === 'string' ? petApiKey : apiKey;
    const response = await respond({
      method: 'POST',
      url: endpoint,
      headers: { 'content-type': 'application/json', traceparent: traceparent ?? undefined },
      body: bodyOf(given),
      signal: () => signal ?? undefined,
      isAborted: () => signal?.aborted ?? false,
      toRequest: () => new Request('http://localhost'),
      inProcess: {
        apiKey: givenApiKey(key),
        waitMs: waitMs ?? undefined,
        cacheControl: cacheControl ?? undefined,
        dryRun: dryRun ?? false,
        visitor: visitor ?? undefined,
        client: client ?? undefined,
        isBackground: background ?? false,
      },
    });
    signal?.throwIfAborted();
    return JSON.parse(String(response.body)) as OperationResult<TData>;
  };

  /** An option that cannot be used is an error like those of HTTP: execute rejects only when its signal aborts. */
  function bodyOf({ document, variables, operationName, waitMs }: AnyOperation): RequestBody {
    if (!isWait(waitMs ?? 0))
      return badRequest(`waitMs must be a number of at least 0, got ${shownValue(waitMs)}.`, 422);
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

function isWait(waitMs: unknown): boolean {
  return typeof waitMs === 'number' && waitMs >= 0;
}
