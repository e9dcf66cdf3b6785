import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastAnswer, FastPath } from './fast-path.ts';
import { createHeldTogether } from './held-together.ts';
import type { RequestHandler } from './listener.ts';
import { createBodyReader } from './request-body.ts';
import type { ReadBody, ReadIncoming } from './request-body.ts';
import { targetPath } from './request-target.ts';
import { SharedResponse } from './shared-response.ts';
import { createTurns } from './turns.ts';

/** What a fetch handler needs from its surroundings to serve Node's http server. It answers its own faults itself. */
export type FetchHandler = (request: Request) => Promise<Response> | Response;

/** What bodies may hold together, in bytes, that nobody needs but where an operation fails as nobody foresaw. */
const MOST_SPARE_BYTES = 67_108_864;

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
  const readBody = createBodyReader({ maxBodyBytes });
  const spare = createHeldTogether<Exchange>(MOST_SPARE_BYTES, (oldest) => (oldest.body = undefined));
  return (incoming, outgoing) => {
    try {
      readBody(incoming, (body) =>
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
    const { incoming, outgoing, signal } = exchange;
    const bytes = exchange.body && 'bytes' in exchange.body && !isCoded(exchange) ? exchange.body.bytes : undefined;
    const fast = bytes && fastPath({ incoming, path: pathOf(incoming), body: bytes, signal });
    // Most answers are there at once, and wait for no promise on their way out.
    if (!fast) void answerByFetch(exchange);
    else if (fast instanceof Promise) {
      spare.hold(exchange, bytes?.length ?? 0);
      void fast.then((come) => {
        spare.release(exchange);
        return come ? send(outgoing, come) : answerByFetch(exchange);
      });
    } else send(outgoing, fast);
    return !fast;
  }

  async function answerByFetch(exchange: Exchange): Promise<void> {
    const { incoming, outgoing } = exchange;
    if (!exchange.body) return refuse(outgoing, 500);
    const isTooLong = 'tooLong' in exchange.body;
    const request = requestOf(exchange);
    // The exchange waits for the answer, and those who parse the body need it no longer than that takes.
    exchange.body = undefined;
    if (!request) return refuse(outgoing, 400);
    try {
      const response = await handle(request);
      const isShared = response instanceof SharedResponse;
      const bytes = isShared ? response.shared : Buffer.from(await response.arrayBuffer());
      // All of it is there, and goes out in one piece: an answer that says both is one that a proxy may take for two.
      const { 'transfer-encoding': _inPieces, ...headers } = Object.fromEntries(response.headers);
      const whole = { status: response.status, headers: withLength(headers, bytes.length, response.status), bytes };
      if (isTooLong && !incoming.complete) sendAndClose(exchange, whole);
      else outgoing.writeHead(whole.status, whole.headers).end(bytes);
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

/** An answer that can have no body says no length of one (RFC 9110, section 8.6). */
function withLength(headers: OutgoingHttpHeaders, bytes: number, status: number): OutgoingHttpHeaders {
  return status === 204 || status === 304 ? headers : { ...headers, 'content-length': bytes };
}

/** How long a client that is told that its body is too long may go on sending it, in milliseconds. */
const LAST_WORDS_MS = 10_000;

/**
 * Nothing more of such a connection is of use. But it is closed only once the client is through, or a moment later: one that
 * is cut off while it sends may never see its answer.
 */
function sendAndClose({ incoming, outgoing }: Exchange, { status, headers, bytes }: WholeAnswer): void {
  outgoing.writeHead(status, { ...headers, connection: 'close' }).write(bytes);
  const end = () => outgoing.end();
  const late = setTimeout(end, LAST_WORDS_MS);
  outgoing.once('close', () => clearTimeout(late));
  incoming.once('end', end);
}

/** Whether the body says that it is packed. That is refused, or a framework has unpacked it; the server knows of both. */
function isCoded({ incoming }: Exchange): boolean {
  return incoming.headers['content-encoding'] !== undefined;
}

interface WholeAnswer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly bytes: Buffer;
}

interface Exchange {
  readonly incoming: ReadIncoming;
  readonly outgoing: ServerResponse;
  /** Undefined once it is handed on, or given up for what all of them hold. */
  body: ReadBody | undefined;
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

/** Where a framework cut the path that this is mounted at off, it keeps the whole of it. */
function pathOf({ originalUrl, url = '/' }: ReadIncoming): string {
  return targetPath(originalUrl ?? url);
}

/** What no key can be read from. Two headers that are joined can look like one, where either of them is empty. */
const SEVERAL = 'several';

/** @returns undefined where the client sent no address or header that a Request can be made of. */
function requestOf({ incoming, body, signal }: Exchange): Request | undefined {
  try {
    return body && toRequest(incoming, body, signal());
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
  if ('parsedBefore' in body) headers.delete('content-encoding');
  // The length alone says that it is too long, and the GraphQL server refuses it for that.
  if ('tooLong' in body) headers.set('content-length', String(body.tooLong));
  const hasBody = 'bytes' in body && body.bytes.length > 0 && method !== 'GET' && method !== 'HEAD';
  return new Request(`http://localhost${pathOf(incoming)}`, {
    method,
    headers,
    signal,
    ...(hasBody ? requestBody(body.bytes) : {}),
  });
}

/** Not worth a stream. */
const SHORT_BODY_BYTES = 4_096;

/** A Request keeps the bytes that it is made of for as long as it lives, and a stream of them only until they are read. */
function requestBody(bytes: Buffer): { body: BodyInit; duplex?: 'half' } {
  if (bytes.length <= SHORT_BODY_BYTES) return { body: new Uint8Array(bytes) };
  const left = [bytes];
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(left.pop() ?? []));
      controller.close();
    },
  });
  return { body, duplex: 'half' };
}
