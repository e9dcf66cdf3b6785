import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastAnswer, FastPath } from './fast-path.ts';
import type { RequestHandler } from './listener.ts';
import { createTurns } from './turns.ts';

/** What a fetch handler needs from its surroundings to serve Node's http server. It answers its own faults itself. */
export type FetchHandler = (request: Request) => Promise<Response> | Response;

/**
 * Lets a fetch handler answer Node's requests, and what stands before it answer those that it can. Bodies are read here
 * and not as streams: a stream that is given up half read leaves its connection stuck, and whoever uses that connection
 * next waits for ever.
 *
 * @param maxBodyBytes what is longer is not read, and `handle` gets its length alone.
 */
export function createNodeHandler(
  handle: FetchHandler,
  maxBodyBytes: number,
  fastPath: FastPath = () => undefined,
): RequestHandler {
  const inTurn = createTurns();
  return (incoming, outgoing) => {
    try {
      readBody(incoming, maxBodyBytes, (body) =>
        inTurn(
          // Whoever is gone by then has no use for an answer.
          () => !outgoing.closed && answer({ incoming, outgoing, body, signal: createSignal(outgoing) }),
        ),
      );
    } catch {
      // What a framework's parser made of the body is no JSON.
      refuse(outgoing, 400);
    }
  };

  /** @returns whether it is for `handle`, which does nearly all its work in promises that are there at once. */
  function answer(exchange: Exchange): boolean {
    const { incoming, outgoing, body, signal } = exchange;
    const fast = 'bytes' in body && fastPath({ incoming, path: pathOf(incoming), body: body.bytes, signal });
    // Most answers are there at once, and wait for no promise on their way out.
    if (!fast) void answerByFetch(exchange);
    else if (fast instanceof Promise) {
      void fast.then((come) => (come ? send(outgoing, come) : answerByFetch(exchange)));
    } else send(outgoing, fast);
    return !fast;
  }

  async function answerByFetch({ incoming, outgoing, body, signal }: Exchange): Promise<void> {
    // Read on and dropped rather than cut off, so that a client that is still sending sees its answer.
    outgoing.once('finish', () => incoming.complete || incoming.resume());
    const request = requestOf(incoming, body, signal());
    if (!request) return refuse(outgoing, 400);
    try {
      const response = await handle(request);
      const bytes = Buffer.from(await response.arrayBuffer());
      // All of it is there, and goes out in one piece: an answer that says both is one that a proxy may take for two.
      const { 'transfer-encoding': _inPieces, ...headers } = Object.fromEntries(response.headers);
      outgoing.writeHead(response.status, { ...headers, 'content-length': bytes.length }).end(bytes);
    } catch {
      // The client is gone, a framework got tired of waiting and answered, or the handler cannot even say what is wrong.
      refuse(outgoing, 500);
    }
  }
}

/** Without a word more, where there is nothing that could say one. */
function refuse(outgoing: ServerResponse, status: 400 | 500): void {
  if (!outgoing.headersSent) outgoing.writeHead(status, { connection: 'close' });
  outgoing.end();
}

interface Exchange {
  readonly incoming: ReadIncoming;
  readonly outgoing: ServerResponse;
  readonly body: ReadBody;
  /** Aborts when the client is gone. */
  readonly signal: () => AbortSignal;
}

/** Made when it is asked for: an answer from memory is there before anybody could go away. */
function createSignal(outgoing: ServerResponse): () => AbortSignal {
  let abort: AbortController | undefined;
  return () => {
    if (abort) return abort.signal;
    const made = new AbortController();
    abort = made;
    if (outgoing.closed) made.abort();
    else outgoing.once('close', () => outgoing.writableFinished || made.abort());
    return made.signal;
  };
}

function send(outgoing: ServerResponse, { status, headers, body, bytes }: FastAnswer): void {
  // A framework that got tired of waiting may have answered.
  if (outgoing.headersSent) return void outgoing.end();
  // What has as many bytes as characters is ASCII, which needs no encoding.
  const encoding = bytes === body.length ? 'latin1' : 'utf8';
  headers.push('content-length', String(bytes));
  outgoing.writeHead(status, headers).end(body, encoding);
}

/** What Express and its like add to a request that went through them. */
interface ReadIncoming extends IncomingMessage {
  readonly originalUrl?: string;
  readonly body?: unknown;
}

/** A body, or how long it is where it is longer than petql reads; it may be longer still. */
type ReadBody = { readonly bytes: Buffer } | { readonly tooLong: number };

/** @param use is not called where the client goes away before all of it is there. */
function readBody(incoming: ReadIncoming, maxBodyBytes: number, use: (body: ReadBody) => void): void {
  if (incoming.readableEnded) return use(readElsewhere(incoming.body, maxBodyBytes));
  const announced = Number(incoming.headers['content-length']);
  if (announced > maxBodyBytes) return use({ tooLong: announced });
  const chunks: Buffer[] = [];
  let length = 0;
  incoming.on('data', (chunk: Buffer) => {
    length += chunk.length;
    chunks.push(chunk);
    if (length <= maxBodyBytes) return;
    incoming.removeAllListeners('data').removeAllListeners('end').pause();
    use({ tooLong: length });
  });
  incoming.on('end', () => {
    const [only] = chunks;
    use({ bytes: only && chunks.length === 1 ? only : Buffer.concat(chunks) });
  });
}

/** A parser of the framework's came first. Numbers that it rounded are still too large to be taken for exact ones. */
function readElsewhere(body: unknown, maxBodyBytes: number): ReadBody {
  const isBytes = typeof body === 'string' || body instanceof Uint8Array;
  const bytes = Buffer.from(isBytes ? body : (JSON.stringify(body) ?? ''));
  return bytes.length > maxBodyBytes ? { tooLong: bytes.length } : { bytes };
}

/** Where a framework cut the path that this is mounted at off, it keeps the whole of it. */
function pathOf({ originalUrl, url = '/' }: ReadIncoming): string {
  return originalUrl ?? url;
}

/** What no key can be read from. Two headers that are joined can look like one, where either of them is empty. */
const SEVERAL = 'several';

/** @returns undefined where the client sent no address or header that a Request can be made of. */
function requestOf(incoming: ReadIncoming, body: ReadBody, signal: AbortSignal): Request | undefined {
  try {
    return toRequest(incoming, body, signal);
  } catch {
    return undefined;
  }
}

function toRequest(incoming: ReadIncoming, body: ReadBody, signal: AbortSignal): Request {
  const { method = 'GET', headersDistinct } = incoming;
  const headers = new Headers();
  for (const [name, values] of Object.entries(headersDistinct)) {
    // Joined, as a Request has them; Node itself drops the second of some in silence.
    if (values) headers.set(name, values.length > 1 && name === 'authorization' ? SEVERAL : values.join(', '));
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
