import type { Dispatcher } from 'undici';
import type { ArrivingCall, Fault } from './fault.ts';

/** Connections of one petql, in this process: no sockets, and every wait is a timer, so that virtual time moves it. */
export interface Connections extends Pick<Dispatcher, 'destroy' | 'dispatch'> {
  /** As if the process were killed: nothing more is sent, and no response comes. What was sent arrives. */
  readonly cut: () => void;
}

/** A call on its way. */
export type SentCall = Pick<ArrivingCall, 'body' | 'headers' | 'method' | 'number' | 'path' | 'sentAtMs'>;

/** What becomes of it. */
export interface Arrived {
  readonly fault: Fault;
  readonly response: {
    readonly status: number;
    readonly headers: Record<string, string | string[]>;
    readonly body: Buffer;
  };
  readonly recordAnswered: () => void;
}

interface ConnectionsOptions {
  /** How long a call takes there, and its response back; chosen for each. */
  readonly legMs: () => number;
  /** Numbers a call that is sent, and stamps it with the time. */
  readonly send: () => Pick<SentCall, 'number' | 'sentAtMs'>;
  readonly arrive: (call: SentCall) => Arrived;
}

export function openConnections({ legMs, send, arrive }: ConnectionsOptions): Connections {
  const inFlight = new Set<Exchange>();
  let isCut = false;

  return {
    cut() {
      isCut = true;
      for (const exchange of inFlight) exchange.silence();
    },
    // A petql that stops ends its own calls; the pet API stays for the others.
    async destroy() {
      isCut = true;
      for (const exchange of inFlight) exchange.break('UND_ERR_DESTROYED');
    },
    dispatch({ method, path, headers, body }, handler) {
      if (isCut) return true;
      const exchange = createExchange(handler);
      const call: SentCall = {
        method,
        path,
        headers: headers as SentCall['headers'],
        body: typeof body === 'string' ? body : '',
        ...send(),
      };
      inFlight.add(exchange);
      void carry(call, exchange).finally(() => inFlight.delete(exchange));
      return true;
    },
  };

  async function carry(call: SentCall, exchange: Exchange): Promise<void> {
    await sleep(legMs());
    if (exchange.isOver) return;
    const { fault, response, recordAnswered } = arrive(call);
    if (fault.connection === 'refused') {
      await sleep(fault.delayMs ?? 0);
      return exchange.break('ECONNREFUSED');
    }
    exchange.begin();
    if (fault.connection === 'silent') return exchange.ended;
    await fault.held;
    await sleep(legMs() + (fault.delayMs ?? 0));
    if (fault.connection === 'reset') return exchange.break('ECONNRESET');
    recordAnswered();
    exchange.respond(response.status, response.headers, response.body.subarray(0, fault.cutAfterBytes));
    if (fault.cutAfterBytes === undefined) exchange.end();
    else exchange.break('UND_ERR_SOCKET');
  }
}

type Exchange = ReturnType<typeof createExchange>;

/** One call as undici reports it to its handler. */
function createExchange(handler: Dispatcher.DispatchHandler) {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const controller = {
    aborted: false,
    paused: false,
    reason: null as Error | null,
    abort(reason: Error) {
      if (exchange.isOver) return;
      Object.assign(controller, { aborted: true, reason });
      exchange.fail(reason);
    },
    pause() {},
    resume() {},
  };
  const exchange = {
    isOver: false,
    ended,
    /** It has a connection. */
    begin: () => handler.onRequestStart?.(controller, {}),
    respond(status: number, headers: Record<string, string | string[]>, body: Buffer) {
      if (exchange.isOver) return;
      handler.onResponseStart?.(controller, status, headers);
      handler.onResponseData?.(controller, body);
    },
    end() {
      if (exchange.isOver) return;
      exchange.silence();
      handler.onResponseEnd?.(controller, {});
    },
    break: (code: string) => exchange.fail(Object.assign(new Error(code), { code })),
    fail(error: Error) {
      if (exchange.isOver) return;
      exchange.silence();
      handler.onResponseError?.(controller, error);
    },
    silence() {
      exchange.isOver = true;
      end();
    },
  };
  return exchange;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
