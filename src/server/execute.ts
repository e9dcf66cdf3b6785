import { print } from 'graphql';
import type { DocumentNode } from 'graphql';
import type { CheckedOptions } from '../settings.ts';
import { givenApiKey } from './api-key.ts';
import type { Respond } from './http/http-message.ts';
import { jsonBody } from './http/request-body.ts';
import type { Execute, Operation, OperationResult, TypedText } from './operation.ts';

type AnyOperation = Operation<unknown, Record<string, unknown>>;

/** Runs operations in this process, in the same way as over HTTP. */
export function createExecute(respond: Respond, { endpoint, petApiKey, maxBodyBytes }: CheckedOptions): Execute {
  const texts = new WeakMap<object, string>();
  return async <TData>(operation: unknown) => {
    const { document, variables, operationName, waitMs, signal, cacheControl, dryRun, traceparent, apiKey, visitor } =
      operation as AnyOperation;
    signal?.throwIfAborted();
    const key = apiKey === undefined && typeof petApiKey === 'string' ? petApiKey : apiKey;
    const response = await respond({
      method: 'POST',
      url: endpoint,
      headers: { 'content-type': 'application/json', traceparent: traceparent ?? undefined },
      body: jsonBody({ query: textOf(document), variables, operationName }, maxBodyBytes),
      signal: () => signal ?? undefined,
      isAborted: () => signal?.aborted ?? false,
      toRequest: () => new Request('http://localhost'),
      inProcess: {
        apiKey: givenApiKey(key),
        waitMs: waitMs ?? undefined,
        cacheControl: cacheControl ?? undefined,
        dryRun: dryRun ?? false,
        visitor: visitor ?? undefined,
      },
    });
    signal?.throwIfAborted();
    return JSON.parse(String(response.body)) as OperationResult<TData>;
  };

  function textOf(document: AnyOperation['document']): string {
    if (typeof document === 'string' || isText(document)) return String(document);
    const text = texts.get(document) ?? print(document as DocumentNode);
    texts.set(document, text);
    return text;
  }
}

function isText(document: object): document is TypedText {
  return Object.prototype.toString.call(document) === '[object String]';
}
