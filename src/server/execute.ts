import { print } from 'graphql';
import type { DocumentNode } from 'graphql';
import type { CheckedOptions } from '../settings.ts';
import { givenApiKey } from './api-key.ts';
import type { Respond } from './http/http-message.ts';
import type { Execute, Operation, OperationResult } from './operation.ts';

type AnyOperation = Operation<unknown, Record<string, unknown>>;

/** Runs operations in this process, in the same way as over HTTP. */
export function createExecute(respond: Respond, { endpoint, petApiKey, maxBodyBytes }: CheckedOptions): Execute {
  const texts = new WeakMap<object, string>();
  return async <TData>(operation: unknown) => {
    const { document, variables, operationName, signal, traceparent, ...options } = operation as AnyOperation;
    signal?.throwIfAborted();
    const body = JSON.stringify({ query: textOf(document), variables, operationName }, bigintAsText);
    const serverKey = typeof petApiKey === 'string' ? petApiKey : undefined;
    const response = await respond({
      method: 'POST',
      url: endpoint,
      headers: { 'content-type': 'application/json', traceparent: traceparent ?? undefined },
      body: Buffer.byteLength(body) > maxBodyBytes ? undefined : body,
      signal: () => signal ?? undefined,
      toRequest: () => new Request('http://localhost'),
      inProcess: { ...options, apiKey: givenApiKey(options.apiKey === undefined ? serverKey : options.apiKey) },
    });
    signal?.throwIfAborted();
    return JSON.parse(String(response.body)) as OperationResult<TData>;
  };

  function textOf(document: AnyOperation['document']): string {
    if (typeof document === 'string' || !('kind' in document)) return String(document);
    const text = texts.get(document) ?? print(document as DocumentNode);
    texts.set(document, text);
    return text;
  }
}

/** Ids may be bigints, which JSON has no numbers for. */
function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
