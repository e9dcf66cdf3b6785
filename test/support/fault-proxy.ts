import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createAnswerFilter } from './answer-filter.ts';
import { createPacedWriter } from './paced-writer.ts';
import type { WireFault } from './wire-fault.ts';

/** Stands between petql and a service, and spoils what passes: HTTP without pipelining, or Redis. */
export interface FaultProxy {
  /** The target's address with the proxy's host and port. */
  readonly url: string;
  readonly port: number;
  /** How many exchanges have begun, and how many of them reached the target. */
  readonly exchanges: number;
  readonly passedOn: number;
  /** From now on, what goes wrong with an exchange: one fault for all of them, a choice for each, or nothing. */
  setFault(fault: ExchangeFault): void;
  /** Ends every connection that stands now, as a service does that was restarted or has grown tired of waiting. */
  endConnections(how: 'close' | 'reset'): void;
  /** Nobody listens any more: connections are refused, and those that stand are reset. */
  refuse(): Promise<void>;
  /** Listens again, on the same port. */
  accept(): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export type ExchangeFault = WireFault | ((exchange: ExchangeStart) => WireFault | undefined) | undefined;

/** An exchange is what a client sends and what it is answered, until it sends again. */
export interface ExchangeStart {
  /** Numbered from 1, as they began. */
  readonly number: number;
  /** Of its connection: 1 for the first, so that a higher one is on a connection that was kept. */
  readonly numberOnConnection: number;
  /** The first bytes that the client sent, as text: of HTTP, the request's line and headers. */
  readonly request: string;
}

export interface FaultProxyOptions {
  readonly target: URL | string;
  readonly fault?: ExchangeFault;
}

export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const target = new URL(options.target);
  const clients = new Set<Socket>();
  let faultOf = options.fault;
  let exchanges = 0;
  let passedOn = 0;
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String(port);

  const proxy: FaultProxy = {
    url: url.href.replace(/\/$/, ''),
    port,
    get exchanges() {
      return exchanges;
    },
    get passedOn() {
      return passedOn;
    },
    setFault(fault) {
      faultOf = fault;
    },
    endConnections(how) {
      for (const client of clients) {
        if (how === 'reset') client.resetAndDestroy();
        else client.destroy();
      }
    },
    async refuse() {
      const closed = once(server, 'close');
      server.close();
      proxy.endConnections('reset');
      await closed;
    },
    async accept() {
      server = await listen(port);
    },
    async close() {
      if (server.listening) await proxy.refuse();
    },
    [Symbol.asyncDispose]: () => proxy.close(),
  };
  return proxy;

  async function listen(onPort: number): Promise<Server> {
    const listening = createServer(join).listen(onPort, '127.0.0.1');
    await once(listening, 'listening');
    return listening;
  }

  function join(client: Socket): void {
    const service = connect(Number(target.port), target.hostname);
    const toService = createPacedWriter(service);
    const toClient = createPacedWriter(client);
    let fault: WireFault = {};
    let filter = createAnswerFilter({}, toClient, client);
    let number = 0;
    /** Whether the next bytes of the client are of another exchange. */
    let over = true;

    client.on('data', (bytes) => {
      if (over) begin(bytes);
      if (fault.resetAt === 'request') client.resetAndDestroy();
      else if (fault.silent !== 'request') toService.write(bytes, fault.latencyMs);
    });
    service.on('data', (bytes) => {
      over = true;
      filter.pass(bytes);
    });
    service.once('end', () => toClient.end());
    service.once('error', () => client.destroy());
    client.on('error', () => {});
    clients.add(client);
    client.once('close', () => {
      clients.delete(client);
      filter.stop();
      service.destroy();
    });

    function begin(bytes: Buffer): void {
      over = false;
      exchanges += 1;
      number += 1;
      const start = { number: exchanges, numberOnConnection: number, request: bytes.toString('latin1') };
      fault = (typeof faultOf === 'function' ? faultOf(start) : faultOf) ?? {};
      if (fault.silent !== 'request' && fault.resetAt !== 'request') passedOn += 1;
      filter = createAnswerFilter(fault, toClient, client);
    }
  }
}
