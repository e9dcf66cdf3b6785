import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { Message } from './messages.ts';

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** However long a request may wait, it is over by then. */
const LONGEST_MS = 15_000;
const SILENCE_MS = 100;
/** Where a request may begin, this one ends the connection. */
const LAST = Buffer.from('GET /health/live HTTP/1.1\r\nHost: petql\r\nConnection: close\r\n\r\n');

/** Sends a message on a connection of its own. */
export async function exchange(origin: string, { method, path, headers, body }: Message): Promise<HttpResponse> {
  const { hostname, port } = new URL(origin);
  const length = body.length > 0 ? ['content-length', String(body.length)] : [];
  const all = [...headers.flat(), ...length, 'connection', 'close'];
  const signal = AbortSignal.timeout(LONGEST_MS);
  const sent = request({ hostname, port, method, path, headers: all, agent: false, signal });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const received = Buffer.concat(await response.toArray()).toString();
  return { status: response.statusCode ?? 0, headers: response.headers, body: received };
}

/** Sends bytes and a last request, and gives what comes back until the connection ends. */
export async function exchangeBytes(origin: string, bytes: Buffer): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  // A client that ends its side aborts its requests, so it waits for a response first.
  socket.setTimeout(SILENCE_MS, () => socket.end());
  socket.on('data', (chunk) => chunks.push(chunk));
  // One that is reset has said what it had to.
  socket.on('error', () => {});
  const closed = new Promise<boolean>((resolve) => socket.once('close', () => resolve(true)));
  socket.write(Buffer.concat([bytes, LAST]));
  const isClosed = await Promise.race([closed, setTimeout(LONGEST_MS, false, { ref: false })]);
  if (!isClosed) throw new Error('the connection does not end');
  return Buffer.concat(chunks).toString();
}
