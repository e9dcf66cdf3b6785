import { setTimeout } from 'node:timers/promises';
import type { Socket } from 'node:net';
import { servePort } from './serve.ts';

/** A request as the server read it. */
export interface RawRequest {
  /** `GET /v1/pets?limit=100`. */
  readonly target: string;
  readonly key: string;
  readonly body: string;
  /** From 1, over all connections and on its own. */
  readonly number: number;
  readonly numberOnConnection: number;
}

/** Pieces of a response, each in a segment of its own; a number is a pause in milliseconds. */
export type RawResponse = Buffer | string | readonly (Buffer | string | number)[];

export interface RawServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly RawRequest[];
  /** How many connections there were. */
  readonly connections: number;
}

/** Answers each request with bytes, which need not be HTTP. */
export async function serveBytes(
  respond: (request: RawRequest, socket: Socket) => RawResponse | undefined,
  host?: string,
): Promise<RawServer> {
  const requests: RawRequest[] = [];
  let connections = 0;
  const server = await servePort((socket) => {
    connections += 1;
    let received = '';
    let numberOnConnection = 0;
    socket.setNoDelay(true);
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1');
      const read = readRequest(received);
      if (!read) return;
      received = '';
      numberOnConnection += 1;
      const request = { ...read, number: requests.length + 1, numberOnConnection };
      requests.push(request);
      void send(socket, respond(request, socket) ?? []);
    });
  }, 0);
  return {
    url: `http://${host ?? '127.0.0.1'}:${server.port}/v1`,
    requests,
    get connections() {
      return connections;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** A whole response with its length. */
export function rawResponse(status: number, body: Buffer | string, headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body);
  const head = [
    `HTTP/1.1 ${status} Any`,
    'Content-Type: application/json',
    ...headers,
    `Content-Length: ${bytes.length}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), bytes]);
}

function readRequest(text: string): Pick<RawRequest, 'body' | 'key' | 'target'> | undefined {
  const [head = '', body] = text.split('\r\n\r\n', 2);
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
  if (body === undefined || body.length < length) return undefined;
  const [target = ''] = head.split(' HTTP/1.1', 1);
  return { target, key: /^authorization: Bearer (.*)$/im.exec(head)?.[1]?.trim() ?? '', body };
}

async function send(socket: Socket, response: RawResponse): Promise<void> {
  const pieces = typeof response === 'string' || Buffer.isBuffer(response) ? [response] : response;
  for (const piece of pieces) {
    if (typeof piece === 'number') await setTimeout(piece);
    else if (socket.writable) socket.write(piece);
    // A segment for each piece.
    await setTimeout(1);
  }
}
