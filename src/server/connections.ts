import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpCounts } from './http-counts.ts';

/** What Node answers to a request that cannot be read. */
const REJECTIONS: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};

/** The connections of a server. Those on which no request has come are not those with a slow one, which they are to Node. */
export class ClientConnections {
  /** The responses that each one waits for. */
  readonly #pending = new Map<Socket, Set<ServerResponse>>();
  #isStopping = false;
  readonly #counts: HttpCounts | undefined;

  /** @param server must not have begun to listen, and has its timeouts. */
  constructor(server: Server, counts: HttpCounts | undefined) {
    this.#counts = counts;
    server.on('connection', (socket) => {
      this.#open(socket);
      // A proxy counts its keep-alive from here on. Node would use its timeout of running requests.
      socket.setTimeout(Math.max(server.timeout, server.keepAliveTimeout));
    });
    const begin = ({ socket }: IncomingMessage, response: ServerResponse) => {
      this.#begin(socket, response);
      socket.setTimeout(server.timeout);
    };
    server.prependListener('request', begin).prependListener('checkExpectation', begin);
    server.on('drop', () => counts?.recordDrop(server.maxConnections));
    server.on('clientError', (error, socket) => this.#reject(error, socket as Socket));
  }

  /** Ends connections with their responses from now on. */
  drain(): void {
    this.#isStopping = true;
    for (const responses of this.#pending.values()) {
      for (const response of responses) response.shouldKeepAlive = false;
    }
  }

  /** Whether a response has said that the connection ends with it. */
  isEnding(socket: Socket): boolean {
    const responses = [...(this.#pending.get(socket) ?? [])];
    return !socket.writable || responses.some(({ headersSent, shouldKeepAlive }) => headersSent && !shouldKeepAlive);
  }

  /** Closes those on which nothing has come: browsers and proxies connect ahead of their first request. */
  closeUnused(): void {
    for (const socket of this.#pending.keys()) if (socket.bytesRead === 0) socket.destroy();
  }

  #open(socket: Socket): void {
    this.#pending.set(socket, new Set());
    socket.once('close', () => this.#pending.delete(socket));
  }

  #begin(socket: Socket, response: ServerResponse): void {
    response.shouldKeepAlive &&= !this.#isStopping;
    const responses = this.#pending.get(socket);
    responses?.add(response);
    response.once('close', () => {
      responses?.delete(response);
      if (response.headersSent) this.#counts?.recordResponse(response.statusCode);
    });
  }

  #reject({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    // The timeout of headers that have not begun. A proxy would take a 408 for the response to its first request.
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) return;

    const isAnswered = [...(this.#pending.get(socket) ?? [])].some(({ headersSent }) => headersSent);
    const status = REJECTIONS[code] ?? '400 Bad Request';
    if (socket.writable && !isAnswered) {
      socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
      this.#counts?.recordResponse(Number.parseInt(status, 10));
    }
    socket.destroy();
  }
}
