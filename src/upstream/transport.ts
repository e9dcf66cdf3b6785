import { Pool, errors } from 'undici';
import type { Dispatcher } from 'undici';

export interface TransportOptions {
  /** The base address, with its version segment. */
  readonly baseUrl: URL;
  /** How long one call may take from its start to the last byte of its answer, in milliseconds. */
  readonly timeoutMs: number;
  /** Connections kept open at most. Default 64. */
  readonly connections?: number;
  /** The largest body that is read, in bytes. Default 1 MiB: a listing of 100 animals has some 10 KiB. */
  readonly maxBodyBytes?: number;
}

export interface TransportRequest {
  readonly method: 'GET' | 'POST';
  /** Below the base address, with its leading slash and its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface TransportResponse {
  readonly kind: 'response';
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Buffer;
}

/** Why a call has no answer. `sent` tells whether the upstream may have seen it. */
export interface TransportFailure {
  readonly kind: 'failure';
  readonly reason: 'broken' | 'timeout' | 'too-large' | 'unreachable';
  readonly sent: boolean;
}

export interface Transport {
  /** Sends one call, and never throws: what goes wrong is a failure with its reason. Redirects are not followed, nothing is retried. */
  send(request: TransportRequest): Promise<TransportResponse | TransportFailure>;
  /** Closes every connection, and cuts whatever is still under way. */
  close(): Promise<void>;
}

/** The one place that knows undici: a pool of HTTP/1.1 connections to one origin. */
export function createTransport(options: TransportOptions): Transport {
  const { baseUrl, timeoutMs, connections = 64, maxBodyBytes = 1_048_576 } = options;
  const basePath = baseUrl.pathname.replace(/\/+$/, '');
  const pool = new Pool(baseUrl.origin, {
    connections,
    connectTimeout: timeoutMs,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    keepAliveTimeout: 4_000,
    maxResponseSize: maxBodyBytes,
    // One call, one connection: what breaks a connection then breaks one call alone.
    pipelining: 1,
    allowH2: false,
  });

  return {
    send: ({ path, ...request }) =>
      new Promise((settle) => {
        // undici's own timeouts watch a phase each and are coarse; this one bounds the whole call.
        const timeout = setTimeout(() => exchange.stop(), timeoutMs);
        const exchange = startExchange((result) => {
          clearTimeout(timeout);
          settle(result);
        });
        pool.dispatch({ ...request, path: basePath + path }, exchange.handler);
      }),
    close: () => pool.destroy(),
  };
}

interface Exchange {
  readonly handler: Dispatcher.DispatchHandler;
  /** Time is up. */
  stop(): void;
}

function startExchange(settle: (result: TransportResponse | TransportFailure) => void): Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let stopped: Error | undefined;
  let settled = false;
  let status = 0;
  let headers: ResponseHeaders = {};
  const chunks: Buffer[] = [];

  function finish(result: TransportResponse | TransportFailure) {
    if (settled) return;
    settled = true;
    settle(result);
  }

  return {
    stop() {
      stopped = new Error('timeout');
      // Settled first, so that whoever waits is not kept by a connection that takes its time to close.
      finish({ kind: 'failure', reason: 'timeout', sent: controller !== undefined });
      controller?.abort(stopped);
    },
    handler: {
      // undici calls this when a connection is there and the request is about to be written to it.
      onRequestStart(started) {
        if (stopped) return started.abort(stopped);
        controller = started;
      },
      onResponseStart(_controller, statusCode, responseHeaders) {
        status = statusCode;
        headers = responseHeaders;
      },
      onResponseData(_controller, chunk) {
        chunks.push(chunk);
      },
      onResponseEnd() {
        const [only] = chunks;
        const body = only && chunks.length === 1 ? only : Buffer.concat(chunks);
        finish({ kind: 'response', status, headers, body });
      },
      onResponseError(_controller, error) {
        const sent = controller !== undefined;
        finish({ kind: 'failure', reason: sent ? reasonOf(error) : unreachableReason(error), sent });
      },
    },
  };
}

function reasonOf(error: Error): TransportFailure['reason'] {
  const { ResponseExceededMaxSizeError, HeadersOverflowError } = errors;
  if (error instanceof ResponseExceededMaxSizeError || error instanceof HeadersOverflowError) return 'too-large';
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) return 'timeout';
  return 'broken';
}

function unreachableReason(error: Error): TransportFailure['reason'] {
  return error instanceof errors.ConnectTimeoutError ? 'timeout' : 'unreachable';
}
