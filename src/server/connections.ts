import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { RequestHandler } from './listener.ts';
import { createReadTurns } from './read-turns.ts';
import { expectsTheUnknown } from './request-expectation.ts';
import { hasSeveralHosts, lacksHost, takeTarget } from './request-target.ts';
import { resetWithoutStacks } from './resets-without-stacks.ts';
import { hasTooManyHeaders } from './too-many-headers.ts';
import { createUnsentAnswers } from './unsent-answers.ts';
import type { UnsentAnswersOptions } from './unsent-answers.ts';

/** What goes on on each connection. */
export interface Connections {
  opened(socket: Socket): void;
  /** Has a request answered, once the answer before it is out. */
  answer(request: IncomingMessage, response: ServerResponse): void;
  /** Closes each behind its last answer, and at once where none is under way. */
  stop(): void;
}

/** Requests of one connection that wait behind an answer. Clients that send some ahead send a handful, tools some hundred. */
const MOST_WAITING = 1_000;
/** What all that wait may hold, in bytes. Past that, the connection that holds most of it is cut off. */
const MOST_WAITING_BYTES = 67_108_864;
/** A request without its headers and its body. */
const REQUEST_BYTES = 4_096;
/** A header's name or its value, besides its text. */
const HEADER_PART_BYTES = 100;
/** What a request costs that came ahead, in pieces of a body: Node takes twenty microseconds and more to make one. */
const PIECES_A_REQUEST = 16;
/** A piece of one byte with what stands around it. Those of a body that waits, nobody counts. */
const LEAST_BYTES_OF_A_PIECE = 6;
/** What one read of a socket brings of them at most, since it is the last one before somebody asks for the body. */
const MOST_PIECES_A_READ = 10_922;
/** What each of them takes in memory. */
const UNREAD_PIECE_BYTES = 275;
/** What Node reads of another body that nobody asks for. */
const UNREAD_BODY_BYTES = 65_536;

/**
 * Begins a request only when the answer before it on its connection is out. Node would have all answered at once that
 * came with one read, a thousand of them, and keep their answers for a client that need not take a single one. Whoever sends
 * more ahead than there is room for is cut off.
 */
export function createConnections(handler: RequestHandler, options: UnsentAnswersOptions): Connections {
  const connections = new Map<Socket, Connection>();
  const unsent = createUnsentAnswers(options);
  const turns = createReadTurns({ connections, mayGoOn });
  let waitingBytes = 0;
  let stopping = false;

  return {
    opened(socket) {
      const connection: Connection = {
        busy: false,
        readBytes: 0,
        countedBytes: 0,
        latest: undefined,
        waiting: [],
        waitingBytes: 0,
      };
      connections.set(socket, connection);
      resetWithoutStacks(socket);
      socket.once('close', () => letGo(socket));
    },
    answer(request, response) {
      const { socket } = request;
      const connection = connections.get(socket);
      // Cut off, or let go, with more of its requests in what was read last: Node goes on to make them.
      if (!connection || socket.destroyed) return turns.read(socket, PIECES_A_REQUEST);
      connection.latest = response;
      if (stopping) response.shouldKeepAlive = false;
      if (!connection.busy) return begin(connection, request, response);
      // Node goes on with it when somebody asks for the body.
      if (isInPieces(request)) socket.pause();
      const pieces = isInPieces(request) ? mostPieces(socket.bytesRead - connection.countedBytes) : 0;
      connection.countedBytes = socket.bytesRead;
      turns.read(socket, PIECES_A_REQUEST + pieces);
      const bytes = bytesOf(request) + pieces * UNREAD_PIECE_BYTES;
      connection.waiting.push({ request, response, bytes });
      connection.waitingBytes += bytes;
      waitingBytes += bytes;
      if (connection.waiting.length > MOST_WAITING) cut(socket);
      else if (waitingBytes > MOST_WAITING_BYTES) cut(fullest());
    },
    stop() {
      stopping = true;
      for (const [socket, { busy, readBytes, latest }] of connections) {
        if (latest) latest.shouldKeepAlive = false;
        // A request that is on its way is answered too.
        if (!busy && socket.bytesRead === readBytes) socket.end();
      }
    },
  };

  /** Whether it does not wait with a body in pieces, of which Node would keep 64 KiB with some hundred bytes for each. */
  function mayGoOn(socket: Socket): boolean {
    const last = connections.get(socket)?.waiting.at(-1)?.request;
    return !last || last.complete || !isInPieces(last);
  }

  function cut(socket: Socket): void {
    letGo(socket);
    socket.destroy();
  }

  function letGo(socket: Socket): void {
    const connection = connections.get(socket);
    connections.delete(socket);
    unsent.forget(socket);
    for (const { bytes } of connection?.waiting.splice(0) ?? []) waitingBytes -= bytes;
  }

  /** Of those that something waits on, which there are. */
  function fullest(): Socket {
    let [most] = connections;
    for (const one of connections) if (!most || one[1].waitingBytes > most[1].waitingBytes) most = one;
    return (most as [Socket, Connection])[0];
  }

  function begin(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    connection.busy = true;
    response.on('prefinish', () => unsent.watch(socket));
    response.on('finish', () => {
      connection.busy = false;
      // The next answer on it may wait for the plan. Where there is none, Node has set how long it is kept.
      if (unsent.forget(socket) && connection.latest !== response) socket.setTimeout(0);
      // It holds its request with all of its headers, and a connection can idle for as long as it is kept.
      if (connection.latest === response) connection.latest = undefined;
      connection.readBytes = socket.bytesRead;
      // That was said to be the last one (RFC 9112, section 9.6).
      if (socket.writableEnded) return letGo(socket);
      const next = connection.waiting.shift();
      // It may have been promised more before.
      if (!next) return void (stopping && socket.end());
      connection.waitingBytes -= next.bytes;
      waitingBytes -= next.bytes;
      begin(connection, next.request, next.response);
    });
    // Of one that is refused too: what came with it is read before its connection closes.
    if (isInPieces(request)) request.on('data', () => turns.read(socket, 1));
    const refusal = refusalOf(request);
    if (refusal) return void response.writeHead(refusal, REFUSED).end();
    takeTarget(request);
    handler(request, response);
  }
}

const REFUSED = { connection: 'close', 'content-length': '0' };

interface Connection {
  /** Whether an answer is under way. */
  busy: boolean;
  /** What had been read of it when the last answer was out. */
  readBytes: number;
  /** What had been read of it when the last request came that had to wait: pieces in that are counted. */
  countedBytes: number;
  /** Answers leave in the order of their requests, and the last of them closes it. Undefined once all of them are out. */
  latest: ServerResponse | undefined;
  readonly waiting: Waiting[];
  /** What those hold together. */
  waitingBytes: number;
}

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What it takes in memory at most. */
  readonly bytes: number;
}

/** The status of what no handler is to see. */
function refusalOf(request: IncomingMessage): 400 | 417 | 431 | undefined {
  if (hasTooManyHeaders(request)) return 431;
  if (lacksHost(request) || hasSeveralHosts(request)) return 400;
  return expectsTheUnknown(request) ? 417 : undefined;
}

function isInPieces({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined;
}

function bytesOf(request: IncomingMessage): number {
  const { headers, rawHeaders } = request;
  const headerBytes = rawHeaders.reduce((bytes, part) => bytes + part.length + HEADER_PART_BYTES, 0);
  return REQUEST_BYTES + headerBytes + Math.min(Number(headers['content-length'] ?? 0), UNREAD_BODY_BYTES);
}

/** In what was read since pieces were counted last. */
function mostPieces(bytes: number): number {
  return Math.min(MOST_PIECES_A_READ, Math.ceil(bytes / LEAST_BYTES_OF_A_PIECE));
}
