import { Connections } from './connections.ts';
import type { ConnectionsOptions } from './connections.ts';
import { createExchange } from './exchange.ts';
import type { ExchangeOptions, TransportFailure, TransportResponse } from './exchange.ts';

export type { UpstreamDispatcher } from './connections.ts';

export interface TransportRequest extends Pick<ExchangeOptions, 'onSent'> {
  readonly method: 'GET' | 'POST';
  /** The path with its leading slash and its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whose call it is: callers share no connection. */
  readonly caller: string;
}

export interface Transport {
  /** Sends one call once, follows no redirect, and never throws. */
  readonly send: (request: TransportRequest) => Promise<TransportFailure | TransportResponse>;
  /** Closes every connection and aborts the calls in flight. */
  readonly close: () => Promise<void>;
}

/** Opens HTTP/1.1 connections to one origin. undici's own `request` cannot say whether a failed call was sent. */
export function createTransport(options: ConnectionsOptions): Transport {
  const { origin, timeoutMs } = options;
  const connections = new Connections(options);
  return {
    async send({ onSent, caller, ...request }) {
      const call = { method: request.method, caller };
      const result = await new Promise<TransportFailure | TransportResponse>((settle) => {
        connections.dispatch(call, { ...request, origin }, createExchange({ timeoutMs, settle, onSent }));
      });
      if (result.kind === 'response' && result.status < 300) connections.accept(call, result.headers);
      return result;
    },
    close: () => connections.close(),
  };
}
