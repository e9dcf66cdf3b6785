import type { IncomingMessage, ServerResponse } from 'node:http';
import { LARGEST_BODY_BYTES } from './document-limits.ts';
import type { FastAnswer, FastPath } from './fast-path.ts';
import type { RequestHandler } from './listener.ts';

/** What a fetch handler needs from its surroundings to serve Node's http server. */
export type FetchHandler = (request: Request) => Promise<Response> | Response;

/**
 * Lets a fetch handler answer Node's requests. Bodies are read here and not as streams: a stream that is given up half
 * read leaves its connection stuck, and whoever uses that connection next waits for ever.
 */
export function createNodeHandler(handle: FetchHandler, fastPath: FastPath = () => undefined): RequestHandler {
  return async (incoming, outgoing) => {
    // Read on and dropped rather than cut off, so that a client that is still sending sees its answer.
    outgoing.once('finish', () => incoming.complete || incoming.resume());
    try {
      const body = await readBody(incoming);
      const abort = new AbortController();
      outgoing.once('close', () => outgoing.writableFinished || abort.abort());
      if ('bytes' in body) {
        const request = { incoming, path: pathOf(incoming), body: body.bytes, signal: abort.signal };
        const answering = fastPath(request);
        const answer = answering instanceof Promise ? await answering : answering;
        if (answer) return send(outgoing, answer);
      }
      const response = await handle(toRequest(incoming, body, abort.signal));
      const bytes = Buffer.from(await response.arrayBuffer());
      const headers = Object.fromEntries(response.headers);
      outgoing.writeHead(response.status, { ...headers, 'content-length': bytes.length }).end(bytes);
    } catch {
      // The client is gone, or what it sent has no address or header that a Request can be made of.
      if (!outgoing.headersSent) outgoing.writeHead(400, { connection: 'close' });
      outgoing.end();
    }
  };
}

function send(outgoing: ServerResponse, { status, headers, body }: FastAnswer): void {
  outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body);
}

/** What Express and its like add to a request that went through them. */
interface ReadIncoming extends IncomingMessage {
  readonly originalUrl?: string;
  readonly body?: unknown;
}

/** A body, or how long it is where it is longer than petql reads; it may be longer still. */
type ReadBody = { readonly bytes: Buffer } | { readonly tooLong: number };

function readBody(incoming: ReadIncoming): Promise<ReadBody> {
  if (incoming.readableEnded) return Promise.resolve(readElsewhere(incoming.body));
  const announced = Number(incoming.headers['content-length']);
  if (announced > LARGEST_BODY_BYTES) return Promise.resolve({ tooLong: announced });
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    incoming.on('data', (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= LARGEST_BODY_BYTES) return;
      incoming.removeAllListeners('data').pause();
      resolve({ tooLong: length });
    });
    incoming.once('end', () => resolve({ bytes: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks) }));
    incoming.once('close', () => incoming.complete || reject(new Error('the request was given up')));
  });
}

/** A parser of the framework's came first. Numbers that it rounded are still too large to be taken for exact ones. */
function readElsewhere(body: unknown): ReadBody {
  const bytes = Buffer.from(typeof body === 'string' || Buffer.isBuffer(body) ? body : (JSON.stringify(body) ?? ''));
  return bytes.length > LARGEST_BODY_BYTES ? { tooLong: bytes.length } : { bytes };
}

/** Where a framework cut the path that this is mounted at off, it keeps the whole of it. */
function pathOf({ originalUrl, url = '/' }: ReadIncoming): string {
  return originalUrl ?? url;
}

function toRequest(incoming: ReadIncoming, body: ReadBody, signal: AbortSignal): Request {
  const { method = 'GET', headersDistinct } = incoming;
  const headers = new Headers();
  for (const [name, values] of Object.entries(headersDistinct)) {
    // Joined, so that a second Authorization header is seen; Node itself would drop it in silence.
    if (values) headers.set(name, values.join(', '));
  }
  // The length alone says that it is too long, and the GraphQL server refuses it for that.
  if ('tooLong' in body) headers.set('content-length', String(body.tooLong));
  const hasBody = 'bytes' in body && body.bytes.length > 0 && method !== 'GET' && method !== 'HEAD';
  return new Request(`http://localhost${pathOf(incoming)}`, {
    method,
    headers,
    signal,
    ...(hasBody ? { body: new Uint8Array(body.bytes) } : {}),
  });
}
