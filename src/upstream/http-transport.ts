import { Pool, ProxyAgent, errors } from 'undici';
import type { Dispatcher } from 'undici';

interface TransportOptions {
  /** Scheme, host and port of the upstream. */
  readonly origin: string;
  /** Max wait for a connection, and then max time from sending the call to the last byte of its response, in milliseconds. */
  readonly timeoutMs: number;
  /** The HTTP proxy for the calls, with its credentials. Default: none. */
  readonly proxy?: URL | undefined;
  /** Takes the calls in place of a pool of connections. Default: none. */
  readonly dispatcher?: UpstreamDispatcher | undefined;
}

/** What the transport uses of undici's `Dispatcher`. */
export type UpstreamDispatcher = Pick<Dispatcher, 'destroy' | 'dispatch'>;

export interface TransportRequest {
  readonly method: 'GET' | 'POST';
  /** The path with its leading slash and its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Called when the call has a connection: from now on the upstream may have received it. */
  readonly onSent?: (() => void) | undefined;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

interface ResponseHead {
  readonly status: number;
  readonly headers: ResponseHeaders;
}

export interface TransportResponse extends ResponseHead {
  readonly kind: 'response';
  readonly body: Buffer;
}

/** Why a call has no complete response. */
export interface TransportFailure {
  readonly kind: 'failure';
  readonly reason: 'broken' | 'timeout' | 'too-large' | 'unreachable';
  /** Whether the upstream may have received the call. */
  readonly sent: boolean;
  /** The code of Node or undici, such as `ENOTFOUND`, or `PROXY_403` with a proxy's status: for the log, and never an address. */
  readonly code?: string;
  /** Status and headers that arrived before the failure. */
  readonly head?: ResponseHead;
}

/** Twenty busy API keys with 50 concurrent calls each. */
const MAX_CONNECTIONS = 1_000;
/** Shorter than `Keep-Alive` headers say: a firewall may drop an idle connection in silence, and a create on it is lost. */
const KEEP_ALIVE_MS = 4_000;
/** A list of 100 pets has some 10 KiB. */
const MAX_BODY_BYTES = 1_048_576;

export interface Transport {
  /** Sends one call once, follows no redirect, and never throws. */
  readonly send: (request: TransportRequest) => Promise<TransportFailure | TransportResponse>;
  /** Closes every connection and aborts the calls in flight. */
  readonly close: () => Promise<void>;
}

const CONNECTIONS = {
  connections: MAX_CONNECTIONS,
  // undici's own timeouts watch one phase each and are coarse; the exchange has one for the whole call.
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveTimeout: KEEP_ALIVE_MS,
  keepAliveMaxTimeout: KEEP_ALIVE_MS,
  // One call a connection, so that a broken connection fails one call only.
  pipelining: 1,
  allowH2: false,
};

/** Opens HTTP/1.1 connections to one origin. undici's own `request` cannot say whether a failed call was sent. */
export function createTransport({ origin, timeoutMs, proxy, ...options }: TransportOptions): Transport {
  const dispatcher = options.dispatcher ?? openDispatcher(origin, timeoutMs, proxy);
  return {
    send: ({ onSent, ...request }) =>
      new Promise((settle) => {
        dispatcher.dispatch({ ...request, origin }, createExchange({ timeoutMs, settle, onSent }));
      }),
    close: () => dispatcher.destroy(),
  };
}

/** A proxy gets calls to an https origin through a tunnel (CONNECT), and other calls themselves. */
function openDispatcher(origin: string, timeoutMs: number, proxy: URL | undefined): Dispatcher {
  if (!proxy) return new Pool(origin, { ...CONNECTIONS, connect: { timeout: timeoutMs } });
  return new ProxyAgent({
    uri: proxy.href,
    connectTimeout: timeoutMs,
    proxyTls: { allowH2: false },
    factory: (to, given: Pool.Options) => new Pool(to, { ...given, ...CONNECTIONS }),
    // A tunnel that hangs would hold its connection for minutes.
    clientFactory: (to, given) => new Pool(to, { ...given, headersTimeout: timeoutMs }),
  });
}

interface ExchangeOptions extends Pick<TransportOptions, 'timeoutMs'>, Pick<TransportRequest, 'onSent'> {
  /** May be called several times; the first result counts. */
  readonly settle: (result: TransportResponse | TransportFailure) => void;
}

function createExchange({ timeoutMs, settle, onSent }: ExchangeOptions): Dispatcher.DispatchHandler {
  let controller: Dispatcher.DispatchController | undefined;
  let aborted: Error | undefined;
  let head: ResponseHead | undefined;
  let bodyBytes = 0;
  const chunks: Buffer[] = [];
  const timeout = setTimeout(() => abort('timeout'), timeoutMs);

  function fail(reason: TransportFailure['reason'], code?: string): void {
    clearTimeout(timeout);
    const sent = controller !== undefined;
    settle({ kind: 'failure', reason, sent, ...(code && { code }), ...(head && { head }) });
  }

  function abort(reason: TransportFailure['reason']): void {
    // Settles before the connection closes, which can take a while.
    fail(reason);
    aborted = new Error(reason);
    controller?.abort(aborted);
  }

  return {
    // undici calls this when the call has a connection and is about to be written to it.
    onRequestStart(started) {
      if (aborted) return started.abort(aborted);
      controller = started;
      // The wait for a connection is over; the time of the call itself begins.
      timeout.refresh();
      onSent?.();
    },

    onResponseStart(_controller, status, headers) {
      // A 1xx is no response.
      if (status >= 200) head = { status, headers };
    },

    onResponseData(_controller, chunk) {
      bodyBytes += chunk.length;
      if (bodyBytes > MAX_BODY_BYTES) return abort('too-large');
      chunks.push(chunk);
    },

    onResponseEnd() {
      clearTimeout(timeout);
      if (head) settle({ kind: 'response', ...head, body: Buffer.concat(chunks) });
    },

    onResponseError(_controller, error) {
      // A proxy passes on nothing that it rejects.
      if (proxyStatusOf(error)) controller = undefined;
      fail(controller ? reasonOf(error) : unsentReason(error), codeOf(error));
    },
  };
}

function reasonOf(error: Error): TransportFailure['reason'] {
  return error instanceof errors.HeadersOverflowError ? 'too-large' : 'broken';
}

function unsentReason(error: Error): TransportFailure['reason'] {
  if (error instanceof errors.ClientDestroyedError) return 'broken';
  return error instanceof errors.ConnectTimeoutError ? 'timeout' : 'unreachable';
}

/** Returns the status with which a proxy rejected a call: undici has it in its messages alone. */
function proxyStatusOf({ message }: Error): string | undefined {
  return /^Proxy .*\((\d{3})\)/.exec(message)?.[1];
}

/** undici's own errors may have a cause that says more. */
function codeOf(error: Error): string | undefined {
  const proxyStatus = proxyStatusOf(error);
  if (proxyStatus) return `PROXY_${proxyStatus}`;
  const codes = [error.cause, error].map((each) => (each as NodeJS.ErrnoException | undefined)?.code);
  return codes.find((code) => typeof code === 'string' && /^[A-Z_0-9]{3,60}$/.test(code));
}
