import type { PetqlError } from '../../common/errors.ts';
import type { RequestBody } from './request-body.ts';

/** A request to petql, whatever brought it: node:http, a fetch handler or `execute`. */
export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: RequestBody;
  /** Whether `/` is petql's own path: a framework may have cut off what stood before it. Default false. */
  readonly ownsRoot?: boolean;
  /** Aborts when the client leaves. Made on first use, since most responses are there before that can happen. */
  readonly signal: () => AbortSignal | undefined;
  /** Whether the client has left. */
  readonly isAborted: () => boolean;
  /** The platform's own Request, without a body, for a `petApiKey` function. */
  readonly toRequest: () => Request;
  /** What the caller of `execute` says instead of headers. */
  readonly inProcess?: InProcessOptions;
}

/** Never throws or rejects. */
export type Respond = (request: HttpRequest) => HttpResponse | Promise<HttpResponse>;

export interface InProcessOptions {
  /** The API key, or why there is none. */
  readonly apiKey: string | PetqlError;
  readonly waitMs: number | undefined;
  readonly cacheControl: string | undefined;
  readonly dryRun: boolean;
  readonly isBackground: boolean;
  /** The end user that shares the API key with others. */
  readonly visitor: string | undefined;
  /** The app that runs the operation. */
  readonly client: string | undefined;
}

export interface HttpResponse {
  readonly status: number;
  /** By lower-case name; of this response alone. */
  readonly headers: Record<string, string>;
  readonly body: Buffer | string;
}

/** The path of a request, without its query. */
export function pathOf({ url }: Pick<HttpRequest, 'url'>): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

/** Whether a path is that of GraphQL. Frameworks may redirect all requests to paths with a slash at the end. */
export function isEndpoint(path: string, endpoint: string): boolean {
  return path === endpoint || path === `${endpoint}/`;
}

type Headers = HttpRequest['headers'];

/** Headers with one value. Others are lists, and Trace Context wants two equal traceparents ignored. */
const SINGLE_HEADERS = [
  'apollographql-client-name',
  'apollographql-client-version',
  'authorization',
  'content-type',
  'origin',
  'petql-dry-run',
  'x-request-id',
];

/** Returns the headers, where one that came several times with equal values counts once: commas join its lines. */
export function withoutRepeats(headers: Headers): Headers {
  const names = SINGLE_HEADERS.filter((name) => isRepeated(headers[name] ?? ''));
  if (names.length === 0) return headers;
  return { ...headers, ...Object.fromEntries(names.map((name) => [name, firstOf(headers[name] ?? '')])) };
}

function isRepeated(value: string): boolean {
  if (!value.includes(',')) return false;
  const first = firstOf(value);
  return value.split(',').every((line) => line.trim() === first);
}

function firstOf(value: string): string {
  return value.slice(0, value.indexOf(',')).trim();
}
