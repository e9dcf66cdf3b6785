import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { WireFault } from './wire-fault.ts';

/** Stands between petql and a server, and spoils what passes: HTTP without pipelining, or Redis. */
export interface FaultProxy extends AsyncDisposable {
  /** The target's address with the proxy's host and port. */
  readonly url: string;
  /** How many exchanges have begun, and how many of them reached the target. */
  readonly exchanges: number;
  readonly passedOn: number;
  /** From now on, what goes wrong with an exchange: one fault for all of them, a choice for each, or nothing. */
  readonly setFault: (fault: ExchangeFault) => void;
  /** Ends every connection, as a server does that was restarted or waited too long. */
  readonly endConnections: (how: 'close' | 'reset') => void;
  /** Refuses connections from now on, and resets those that stand. */
  readonly refuse: () => Promise<void>;
  /** Listens again, on the same port. */
  readonly accept: () => Promise<void>;
  readonly close: () => Promise<void>;
}

type ExchangeFault = WireFault | ((exchange: ExchangeStart) => WireFault | undefined) | undefined;

/** An exchange is what a client sends and the response, until the client sends again. */
interface ExchangeStart {
  /** From 1, on its connection; a higher one is on a connection that was kept. */
  readonly numberOnConnection: number;
}

export async function startFaultProxy(options: { readonly target: URL | string }): Promise<FaultProxy> {
  const target = new URL(options.target);
  const clients = new Set<Socket>();
  let faultOf: ExchangeFault;
  let exchanges = 0;
  let passedOn = 0;
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  const url = Object.assign(new URL(target), { hostname: '127.0.0.1', port: String(port) });

  const proxy: FaultProxy = {
    url: url.href.replace(/\/$/, ''),
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
    const upstream = connect(Number(target.port), target.hostname);
    const toUpstream = createPacedWriter(upstream);
    const toClient = createPacedWriter(client);
    let fault: WireFault = {};
    let filter = createFilter(fault, toClient, client);
    let number = 0;
    let isAnswered = true;

    client.on('data', (bytes) => {
      if (isAnswered) begin();
      if (fault.resetAt === 'request') client.resetAndDestroy();
      else if (fault.silent !== 'request') toUpstream.write(bytes, fault.latencyMs);
    });
    upstream.on('data', (bytes) => {
      isAnswered = true;
      filter.pass(bytes);
    });
    upstream.once('end', () => toClient.inTurn(() => client.end()));
    upstream.once('error', () => client.destroy());
    client.on('error', () => {});
    clients.add(client);
    client.once('close', () => {
      clients.delete(client);
      upstream.destroy();
    });

    function begin(): void {
      isAnswered = false;
      exchanges += 1;
      number += 1;
      fault = (typeof faultOf === 'function' ? faultOf({ numberOnConnection: number }) : faultOf) ?? {};
      if (fault.silent !== 'request' && fault.resetAt !== 'request') passedOn += 1;
      filter = createFilter(fault, toClient, client);
    }
  }
}

const HEAD_END = '\r\n\r\n';
/** Behind the status line. */
const MID_HEADERS = 30;
const SPACES = Buffer.from(`1000\r\n${' '.repeat(0x1000)}\r\n`);

/** Passes the response of one exchange on, spoilt as its fault says. */
function createFilter(fault: WireFault, to: PacedWriter, client: Socket) {
  const { latencyMs, bytesPerSecond, cutAfterBytes = Infinity } = fault;
  const write = (bytes: Buffer) => to.write(bytes, latencyMs, bytesPerSecond);
  /** How many bytes may still pass, once that is known. */
  let left = { answer: 0, headers: MID_HEADERS, body: undefined, request: 0, none: cutAfterBytes }[
    fault.resetAt ?? 'none'
  ];
  let head = Buffer.alloc(0);
  let isOver = fault.silent !== undefined;

  return {
    pass(bytes: Buffer): void {
      if (isOver) return;
      if (fault.bytes !== undefined) {
        isOver = true;
        return write(Buffer.from(fault.bytes, 'latin1'));
      }
      if (left !== undefined && !fault.endless) return passSome(bytes);
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf(HEAD_END);
      if (end < 0) return;
      if (fault.endless) return pourSpaces(head.toString('latin1', 0, end));
      left = end + HEAD_END.length;
      passSome(head);
    },
  };

  function passSome(bytes: Buffer): void {
    const passing = bytes.subarray(0, left);
    if (passing.length > 0) write(passing);
    left = (left ?? 0) - passing.length;
    if (left > 0) return;
    isOver = true;
    to.inTurn(() => (fault.resetAt ? client.resetAndDestroy() : client.end()));
  }

  function pourSpaces(headers: string): void {
    write(Buffer.from(headers.replace(/content-length: *\d+/i, 'transfer-encoding: chunked') + HEAD_END, 'latin1'));
    const pour = () => {
      if (client.destroyed) return;
      if (bytesPerSecond !== undefined) {
        write(SPACES);
        to.inTurn(() => setImmediate(pour));
      } else if (client.write(SPACES)) setImmediate(pour);
      else client.once('drain', pour);
    };
    isOver = true;
    to.inTurn(pour);
  }
}

type PacedWriter = ReturnType<typeof createPacedWriter>;

/** So many pieces a second, where the pace allows more than a byte for each. */
const PIECES_PER_SECOND = 20;

/** Writes to a socket in order, each piece when its time has come. */
function createPacedWriter(socket: Socket) {
  /** When the last piece leaves: bytes keep their order when a delay is shortened. */
  let lastMs = 0;
  const waiting: (() => unknown)[] = [];
  return {
    write(bytes: Buffer, latencyMs = 0, bytesPerSecond = Infinity): void {
      const size = Math.max(1, Math.min(bytes.length, Math.floor(bytesPerSecond / PIECES_PER_SECOND)));
      let atMs = performance.now() + latencyMs;
      for (let at = 0; at < bytes.length; at += size) {
        const piece = bytes.subarray(at, at + size);
        schedule(atMs, () => socket.writable && socket.write(piece));
        atMs = lastMs + (piece.length / bytesPerSecond) * 1_000;
      }
    },
    /** Does something once what was written before is on its way. */
    inTurn: (act: () => void) => schedule(0, act),
  };

  function schedule(atMs: number, act: () => unknown): void {
    lastMs = Math.max(lastMs, atMs);
    const delayMs = lastMs - performance.now();
    // At once where nothing is before it, so that a proxy without a fault costs no turn of the event loop.
    if (delayMs <= 0 && waiting.length === 0) return void act();
    waiting.push(act);
    // The first in the queue, since timers of nearly the same moment may change places.
    setTimeout(() => waiting.shift()?.(), Math.max(0, delayMs)).unref();
  }
}
