import { LRUCache } from 'lru-cache';
import type { CachedRead } from '../../caller/request-read.ts';
import { bytesFor } from '../../common/memory.ts';
import type { CheckedOptions } from '../../settings/settings.ts';
import type { OperationName } from '../request-state.ts';
import { isEndpoint } from './http-message.ts';
import type { HttpRequest } from './http-message.ts';

/** A response that may be served again. */
export interface CachedResponse {
  /** Without those of one moment. */
  readonly headers: Readonly<Record<string, string>>;
  /** The value of `data`, as JSON. */
  readonly data: string;
  /** What the response was made of. It is valid while each of these, read again, has the same result. */
  readonly reads: readonly CachedRead[];
  readonly operation: OperationName;
}

/** An entry without its texts and reads. */
const ENTRY_BYTES = 500;

/** Whole responses of queries by all that they depend on, the caller's key among it. The least recently used goes first. */
export function createResponseCache(): LRUCache<string, CachedResponse> {
  return new LRUCache({
    maxSize: bytesFor('responses'),
    sizeCalculation: ({ data, reads }, key) =>
      reads.reduce((sum, { read }) => sum + read.bytes, 2 * (data.length + key.length) + ENTRY_BYTES),
  });
}

/** Nothing else of a request changes its response. No header's value has a line end. */
const KEY_HEADERS = ['authorization', 'accept', 'content-type', 'cache-control'] as const;

/** Returns the key of a request's response; undefined where it is never served from the cache. */
export function cacheKey(request: HttpRequest, { endpoint, petApiKey }: CheckedOptions): string | undefined {
  const { method, headers, body, inProcess } = request;
  if (typeof body !== 'string') return undefined;
  if (inProcess) {
    const { apiKey, cacheControl, dryRun } = inProcess;
    return typeof apiKey === 'string' && !dryRun ? `execute\n${apiKey}\n${cacheControl}\n${body}` : undefined;
  }
  // No request shows whose key a function finds.
  if (typeof petApiKey === 'function' || method !== 'POST' || !isEndpoint(request.url, endpoint)) return undefined;
  if (headers['petql-dry-run'] !== undefined) return undefined;
  const keyHeaders = KEY_HEADERS.map((name) => headers[name] ?? '').join('\n');
  return `http\n${keyHeaders}\n${body}`;
}
