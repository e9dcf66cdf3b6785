import type { TLSSocket } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { Pool, ProxyAgent, buildConnector, errors } from 'undici';
import type { Dispatcher } from 'undici';
import { entriesFor, maxEntries } from '../common/memory.ts';
import { dropContinue } from './drop-continue.ts';
import { connectTcp } from './tcp-connect.ts';
import {
  KEEP_ALIVE_FOR_WRITES_MS,
  KEEP_ALIVE_MARGIN_MS,
  MAX_CONNECTION_AGE_MS,
  UPSTREAM_KEEP_ALIVE_MS,
} from '../common/times.ts';

export interface ConnectionsOptions {
  /** Scheme, host and port of the upstream. */
  readonly origin: string;
  /** Max wait for a connection, in milliseconds. */
  readonly timeoutMs: number;
  /** The HTTP proxy for the calls, with its credentials. Default: none. */
  readonly proxy?: URL | undefined;
  /** Takes the calls in place of pools of connections. Default: none. */
  readonly dispatcher?: UpstreamDispatcher | undefined;
}

/** What petql uses of undici's `Dispatcher`. */
export type UpstreamDispatcher = Pick<Dispatcher, 'destroy' | 'dispatch'>;
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;
export type CallHandler = Dispatcher.DispatchHandler;
export type CallController = Dispatcher.DispatchController;

/** A call, for the choice of its connection. */
interface Departing {
  readonly method: 'GET' | 'POST';
  /** Whose call it is: callers share no connection. */
  readonly caller: string;
}

/** One caller has so many connections at most, and so have all callers together that the upstream has not accepted yet. */
const MAX_CONNECTIONS = 1_000;
/** What a pool takes whose connections have ended; measured. */
const POOL_BYTES = 25_000;

const CONNECTIONS = {
  connections: MAX_CONNECTIONS,
  // undici's own timeouts watch one phase each and are coarse; the exchange has one for the whole call.
  headersTimeout: 0,
  bodyTimeout: 0,
  // One call a connection, so that a broken connection fails one call only.
  pipelining: 1,
  allowH2: false,
  keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
  clientTtl: MAX_CONNECTION_AGE_MS,
};

/**
 * The HTTP/1.1 connections to one origin. Each caller has its own: a second response that comes late, while the next call is under
 * way, would be the response to that call, and no client can tell.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #connect: buildConnector.connector;
  /** One connection for each call, so that made-up API keys hold none, and take none of those below. */
  readonly #unaccepted: Dispatcher;
  /** By method and caller. A caller that is evicted has a connection for each call until it is accepted again. */
  readonly #pools = new LRUCache<string, KeptPool>({
    ...maxEntries(entriesFor('connections', POOL_BYTES)),
    dispose: ({ pool }) => void pool.close(),
  });

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#connect = createConnect(options.timeoutMs);
    this.#unaccepted = this.#open(UPSTREAM_KEEP_ALIVE_MS, UPSTREAM_KEEP_ALIVE_MS);
  }

  dispatch(call: Departing, request: Dispatcher.DispatchOptions, handler: CallHandler): void {
    const kept = this.#options.dispatcher ?? this.#pools.get(poolName(call))?.pool;
    if (kept) kept.dispatch(request, handler);
    else this.#unaccepted.dispatch({ ...request, reset: true }, handler);
  }

  /** Lets the caller keep connections: the upstream has accepted a call of it, and responded with these headers. */
  accept(call: Departing, headers: ResponseHeaders): void {
    if (this.#options.dispatcher) return;
    const keepAliveMs = call.method === 'GET' ? UPSTREAM_KEEP_ALIVE_MS : KEEP_ALIVE_FOR_WRITES_MS;
    const name = poolName(call);
    const kept = this.#pools.get(name);
    // A read that meets the end of a connection is repeated.
    const isMisled = call.method !== 'GET' && (isKeepAliveOfAnother(headers) ?? kept?.isMisled ?? false);
    if (kept?.isMisled === isMisled) return;
    const pool = this.#open(keepAliveMs, isMisled ? keepAliveMs : UPSTREAM_KEEP_ALIVE_MS);
    this.#pools.set(name, { pool, isMisled });
  }

  /** Closes every connection and aborts the calls in flight. */
  async close(): Promise<void> {
    await this.#options.dispatcher?.destroy();
    await Promise.all(
      [this.#unaccepted, ...[...this.#pools.values()].map(({ pool }) => pool)].map((pool) => pool.destroy()),
    );
  }

  /**
   * @param keepAliveMs how long a connection without a call is kept where the server does not say.
   * @param maxKeepAliveMs the same where it does.
   */
  #open(keepAliveMs: number, maxKeepAliveMs: number): Dispatcher {
    const { origin, timeoutMs, proxy } = this.#options;
    const options = { ...CONNECTIONS, keepAliveTimeout: keepAliveMs, keepAliveMaxTimeout: maxKeepAliveMs };
    if (!proxy) return new Pool(origin, { ...options, connect: readingOn(this.#connect) });
    return new ProxyAgent({
      uri: proxy.href,
      connectTimeout: timeoutMs,
      proxyTls: { allowH2: false },
      // A proxy gets calls to an https origin through a tunnel (CONNECT), and other calls themselves.
      factory: (to, given: PoolOptions) => new Pool(to, { ...given, ...options, connect: readingOn(given.connect) }),
      // A tunnel that hangs would hold its connection for minutes.
      clientFactory: (to, given) => new Pool(to, { ...given, headersTimeout: timeoutMs }),
    });
  }
}

interface PoolOptions extends Pool.Options {
  readonly connect: buildConnector.connector;
}

/** The kept connections of one caller. */
interface KeptPool {
  readonly pool: Dispatcher;
  /** Whether the server names the end of other connections than these. */
  readonly isMisled: boolean;
}

/**
 * Whether a `Keep-Alive` header is about another connection: HAProxy passes on that of the server behind it, without the `Connection`
 * header that has to name it (RFC 9110, section 7.6.1). Undefined without one, and where the connection ends.
 */
function isKeepAliveOfAnother(headers: ResponseHeaders): boolean | undefined {
  const connection = String(headers['connection'] ?? '');
  if (headers['keep-alive'] === undefined || /\bclose\b/i.test(connection)) return undefined;
  return !/\bkeep-alive\b/i.test(connection);
}

function poolName({ method, caller }: Departing): string {
  return `${method} ${caller}`;
}

function createConnect(timeoutMs: number): buildConnector.connector {
  // undici resumes the latest session, and holds it weakly: without this the garbage collector would take it.
  const held: { session?: Buffer } = {};
  const startTls = buildConnector({ allowH2: false, timeout: timeoutMs }) as TlsConnector;
  return (options, callback) => {
    const { hostname, port, protocol } = options;
    const isTls = protocol === 'https:';
    connectTcp({ hostname, port: Number(port || (isTls ? 443 : 80)), timeoutMs }, (...[error, socket]) => {
      if (error) callback(error, null);
      else if (isTls)
        startTls({ ...options, httpSocket: socket }, callback).on('session', (latest) => (held.session = latest));
      else callback(null, socket);
    });
  };
}

/** undici returns the socket, which its types leave out. */
type TlsConnector = (...parameters: Parameters<buildConnector.connector>) => TLSSocket;

function readingOn(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error) return callback(error, null);
      dropContinue(socket);
      callback(null, socket);
    });
}

/** What undici, Node or petql itself says of a call that failed: its code, or else its words. */
export interface Explanation {
  /** Such as `ENOTFOUND`, or `PROXY_403` with a proxy's status; never an address. */
  readonly code?: string;
  readonly problem?: string;
}

/** Returns why a call that was written to a connection failed. */
export function reasonOfBreak(error: Error): 'broken' | 'malformed' | 'too-large' {
  if (error instanceof errors.HeadersOverflowError) return 'too-large';
  const isMalformed =
    error instanceof errors.HTTPParserError || codeOf(error) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH';
  return isMalformed ? 'malformed' : 'broken';
}

/** Returns why a call has no connection. */
export function reasonWithoutConnection(error: Error): 'broken' | 'timeout' | 'unreachable' {
  if (error instanceof errors.ClientDestroyedError) return 'broken';
  return TIMEOUTS.has(codeOf(error) ?? '') ? 'timeout' : 'unreachable';
}

const TIMEOUTS: ReadonlySet<string> = new Set(['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT']);

/** Returns the status with which a proxy rejected a call: undici has it in its messages alone. */
export function proxyStatusOf({ message }: Error): string | undefined {
  return /^Proxy .*\((\d{3})\)/.exec(message)?.[1];
}

export function explanationOf(error: Error): Explanation {
  const proxyStatus = proxyStatusOf(error);
  if (proxyStatus) return { code: `PROXY_${proxyStatus}` };
  const code = codeOf(error);
  if (code) return { code };
  // The words of the parser, which are of its own source and none of the response.
  return { problem: error instanceof errors.HTTPParserError ? error.message : error.name };
}

/** undici's own errors may have a cause that says more. */
function codeOf(error: Error): string | undefined {
  const codes = [error.cause, error].map((each) => (each as NodeJS.ErrnoException | undefined)?.code);
  return codes.find((code) => typeof code === 'string' && /^[A-Z_0-9]{3,60}$/.test(code));
}
