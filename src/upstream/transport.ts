import { Pool, buildConnector, errors } from 'undici';
import type { Dispatcher } from 'undici';
import { createGrowingBuffer } from '../growing-buffer.ts';
import { smallReads } from './small-reads.ts';

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
  /** Whether an answer with this status says all by it. It is an answer at once then, with no body. */
  readonly isPlain?: (status: number) => boolean;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface ResponseHead {
  readonly status: number;
  readonly headers: ResponseHeaders;
}

export interface TransportResponse extends ResponseHead {
  readonly kind: 'response';
  readonly body: Buffer;
}

/** Why a call has no whole answer. `sent` tells whether the upstream may have seen it. */
export interface TransportFailure {
  readonly kind: 'failure';
  readonly reason: 'broken' | 'timeout' | 'too-large' | 'unreachable';
  readonly sent: boolean;
  /** What Node or undici call it, such as `ENOTFOUND` or `CERT_HAS_EXPIRED`: for the log, and never an address. */
  readonly code?: string;
  /** What came before it went wrong: a status and what is said of the plan hold, whatever becomes of the body. */
  readonly head?: ResponseHead;
}

export interface Transport {
  /** Sends one call, and never throws: what goes wrong is a failure with its reason. Redirects are not followed, and nothing is sent twice. */
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
    connect: createConnector(timeoutMs),
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    keepAliveTimeout: 4_000,
    maxResponseSize: maxBodyBytes,
    // One call, one connection: what breaks a connection then breaks one call alone.
    pipelining: 1,
    allowH2: false,
  });

  return {
    send: ({ path, isPlain, ...request }) =>
      new Promise((settle) => {
        const begin = () => void pool.dispatch({ ...request, path: basePath + path }, exchange);
        const exchange = createExchange({ timeoutMs, maxBodyBytes, isPlain, begin, settle });
        begin();
      }),
    close: () => pool.destroy(),
  };
}

/** What undici does without one, but for the small reads. */
function createConnector(timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ allowH2: false, timeout: timeoutMs });
  return (options, done) =>
    connect(options, (...[error, socket]) => (socket ? done(null, smallReads(socket)) : done(error, null)));
}

interface ExchangeOptions {
  readonly isPlain: TransportRequest['isPlain'];
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
  /** Asks for a connection to be sent on. */
  begin(): void;
  /** Only the first result counts. */
  settle(result: TransportResponse | TransportFailure): void;
}

function createExchange({
  timeoutMs,
  maxBodyBytes,
  isPlain,
  begin,
  settle,
}: ExchangeOptions): Dispatcher.DispatchHandler {
  let controller: Dispatcher.DispatchController | undefined;
  let stopped: Error | undefined;
  let head: ResponseHead | undefined;
  let plain = false;
  let resets = 0;
  const body = createGrowingBuffer({ mostBytes: maxBodyBytes });
  // undici's own timeouts watch a phase each and are coarse; this one bounds the whole call.
  let timeout = setTimeout(() => {
    // Settled first, so that whoever waits is not kept by a connection that takes its time to close.
    fail('timeout');
    stop();
  }, timeoutMs);

  function stop() {
    stopped = new Error('timeout');
    controller?.abort(stopped);
  }

  function fail(reason: TransportFailure['reason'], code?: string) {
    settle({ kind: 'failure', reason, sent: controller !== undefined, ...(code && { code }), ...(head && { head }) });
  }

  /**
   * Whether the connection was reset that it was about to be written to: the service let it go while it was kept. Where such a
   * connection merely ends, undici takes another one by itself.
   */
  function isResetBefore(error: Error): boolean {
    if (controller || stopped || codeOf(error) !== 'ECONNRESET') return false;
    resets += 1;
    return resets <= MOST_RESETS;
  }

  return {
    // undici calls this when a connection is there and the request is about to be written to it.
    onRequestStart(started) {
      if (stopped) return started.abort(stopped);
      controller = started;
    },
    onResponseStart(_controller, status, headers) {
      // Hints that come before the answer are none.
      if (status < 200) return;
      head = { status, headers };
      if (!isPlain?.(status)) return;
      plain = true;
      settle({ kind: 'response', ...head, body: NO_BYTES });
      clearTimeout(timeout);
      timeout = setTimeout(stop, Math.min(timeoutMs, REST_OF_PLAIN_MS));
    },
    onResponseData(_controller, chunk) {
      if (!plain) body.add(chunk);
    },
    onResponseEnd() {
      clearTimeout(timeout);
      if (head) settle({ kind: 'response', ...head, body: body.bytes() });
    },
    onResponseError(_controller, error) {
      if (isResetBefore(error)) return queueMicrotask(begin);
      clearTimeout(timeout);
      fail(controller ? reasonOf(error) : unreachableReason(error), codeOf(error));
    },
  };
}

/** Another kept connection may have been reset at the same moment. One that is being made may be, too, and no more than a few are tried. */
const MOST_RESETS = 2;
const NO_BYTES = Buffer.alloc(0);
/** A connection is worth this wait for the rest of an answer that nobody reads. Bodies that never end would take the whole pool. */
const REST_OF_PLAIN_MS = 250;

function reasonOf(error: Error): TransportFailure['reason'] {
  const { ResponseExceededMaxSizeError, HeadersOverflowError } = errors;
  if (error instanceof ResponseExceededMaxSizeError || error instanceof HeadersOverflowError) return 'too-large';
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) return 'timeout';
  return 'broken';
}

function unreachableReason(error: Error): TransportFailure['reason'] {
  return error instanceof errors.ConnectTimeoutError ? 'timeout' : 'unreachable';
}

/** undici's own errors may have a cause that says more. */
function codeOf(error: Error): string | undefined {
  const codes = [error.cause, error].map((each) => (each as NodeJS.ErrnoException | undefined)?.code);
  return codes.find((code) => typeof code === 'string' && /^[A-Z_0-9]{3,60}$/.test(code));
}
