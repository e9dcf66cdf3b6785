import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { RequestHandler } from '../../../src/server/listener.ts';
import type { Message } from './messages.ts';

export interface HttpResponse {
  readonly status: number;
  /** By names in small letters. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

const SILENCE_MS = 100;
/** Where a request may begin, this one ends the connection. */
const LAST = Buffer.from('GET /health/live HTTP/1.1\r\nHost: petql\r\nConnection: close\r\n\r\n');

/** However long a request may wait, it is over by then. */
const LONGEST_MS = 15_000;

/** Hands a message to a handler of Node's http server, with no connection between them. */
export async function exchangeInProcess(
  handler: RequestHandler,
  { method, path, headers, body }: Message,
): Promise<HttpResponse> {
  const chunks: Buffer[] = [];
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  }) as Socket;
  const incoming = new IncomingMessage(socket);
  Object.assign(incoming, { method, url: path, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 });
  const lines = headers.flatMap(([name, text]) => [name, text.trim()]);
  // As Node's own parser hands them over; there is no other way.
  // oxlint-disable-next-line no-underscore-dangle -- Node's name
  (incoming as unknown as { _addHeaderLines(all: string[], count: number): void })._addHeaderLines(lines, lines.length);
  incoming.push(body);
  incoming.push(null);
  // Or it would take its end for the client's going away.
  incoming.complete = true;
  const outgoing = new ServerResponse(incoming);
  outgoing.assignSocket(socket);
  handler(incoming, outgoing);
  if (!outgoing.writableFinished) await once(outgoing, 'finish', { signal: AbortSignal.timeout(LONGEST_MS) });
  return readResponse(Buffer.concat(chunks));
}

/** Sends bytes and a last request, and gives what comes back until the connection ends. */
export async function exchangeBytes(origin: string, bytes: Buffer): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  // A client that ends its side aborts its requests, so it waits for a response first.
  const silence = setTimeout(() => socket.end(), SILENCE_MS);
  socket.on('data', (chunk) => {
    chunks.push(chunk);
    silence.refresh();
  });
  // One that is reset has said what it had to.
  socket.on('error', () => {});
  socket.write(Buffer.concat([bytes, LAST]));
  await new Promise<void>((resolve, reject) => {
    const patience = setTimeout(() => reject(new Error('the connection does not end')), LONGEST_MS);
    socket.once('close', () => {
      clearTimeout(patience);
      clearTimeout(silence);
      resolve();
    });
  });
  return Buffer.concat(chunks).toString();
}

function readResponse(bytes: Buffer): HttpResponse {
  const end = bytes.indexOf('\r\n\r\n');
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    headers.set(name, [headers.get(name) ?? [], line.slice(colon + 1).trim()].flat().join(', '));
  }
  return { status: Number(first.split(' ')[1]), headers, body: bytes.subarray(end + 4).toString() };
}
