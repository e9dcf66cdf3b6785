import type { PetqlError } from '../../errors.ts';
import type { OperationOptions } from '../operation.ts';

/** A request to petql, whatever brought it: node:http, a fetch handler or `execute`. */
export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Undefined where the body is longer than `maxBodyBytes`. */
  readonly body: string | undefined;
  /** Aborts when the client leaves. Made on first use, since most responses are there before that can happen. */
  signal(): AbortSignal | undefined;
  /** The platform's own Request, without a body, for a `petApiKey` function. */
  toRequest(): Request;
  /** What the caller of `execute` says instead of headers. */
  readonly inProcess?: OperationOptions & { readonly apiKey: string | PetqlError };
}

export interface HttpResponse {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
}

/** Never rejects. */
export type Respond = (request: HttpRequest) => Promise<HttpResponse>;

/** The path of a request, without its query. */
export function pathOf({ url }: Pick<HttpRequest, 'url'>): string {
  return url.split('?', 1)[0] ?? url;
}
