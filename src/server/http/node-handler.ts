import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestHandler } from '../listener.ts';
import { isHealthPath } from './health.ts';
import { pathOf, withoutRepeats } from './http-message.ts';
import type { HttpRequest, HttpResponse, Respond } from './http-message.ts';
import { jsonBody } from './request-body.ts';
import type { BodyReader, RequestBodies, RequestBody } from './request-body.ts';
import { SECURITY_HEADERS } from './response-headers.ts';
import { closeUnread } from './unread-request.ts';

/** What Express and similar frameworks add to a request. */
interface FrameworkRequest extends IncomingMessage {
  readonly originalUrl?: string;
  /** The path at which Express has mounted the handler, and which it cut off; empty at the root. */
  readonly baseUrl?: string;
  readonly body?: unknown;
}

/** Serves Node's http server, and frameworks that are built on its requests and responses. */
export function createNodeHandler(respond: Respond, bodies: RequestBodies, endpoint: string): RequestHandler {
  return (incoming: FrameworkRequest, outgoing, next) => {
    // Koa waits for what is returned.
    if (typeof next === 'function' && isForOthers(incoming, endpoint)) return next();
    readBody(incoming, outgoing, bodies, (body) => {
      // A client that left while its body came needs no response.
      if (outgoing.closed) return;
      const response = respond(toHttpRequest(incoming, outgoing, body));
      if (response instanceof Promise) void response.then((settled) => send(incoming, outgoing, settled));
      else send(incoming, outgoing, response);
    });
    return undefined;
  };
}

/** Whether a framework, at whose root this is, has other routes for the request. Below a path that it cut off all are for petql. */
function isForOthers(incoming: FrameworkRequest, endpoint: string): boolean {
  const path = pathOf({ url: wholeTarget(incoming) });
  const isOwn = path === endpoint || path.startsWith(`${endpoint}/`) || isHealthPath(path);
  return !isMounted(incoming) && !isOwn;
}

/** Whether a framework cut a path off. What rewrites `url` for a single page or as an alias leaves the original one, too. */
function isMounted({ url = '/', originalUrl = url, baseUrl }: FrameworkRequest): boolean {
  return baseUrl === undefined ? originalUrl !== url : baseUrl !== '';
}

function wholeTarget(incoming: FrameworkRequest): string {
  const { url = '/', originalUrl = url } = incoming;
  return targetPath(isMounted(incoming) ? originalUrl : url);
}

/** Uses the body once it is there, or the error of one that cannot be used as soon as that is known. */
function readBody(
  incoming: FrameworkRequest,
  outgoing: ServerResponse,
  bodies: RequestBodies,
  use: (body: RequestBody) => void,
): void {
  const isParsed = incoming.readableEnded;
  const reader = bodies.read(isParsed ? undefined : incoming.headers['content-encoding']);
  outgoing.once('close', () => reader.release());
  if (incoming.readableDidRead && incoming.body === undefined) return use(bodies.taken());
  if (isParsed) return use(parsedBody(incoming.body, reader, bodies));

  let isUsed = false;
  const useOnce = () => {
    if (!isUsed) use(reader.body());
    isUsed = true;
  };
  incoming.on('data', (chunk: Buffer) => reader.add(chunk) || useOnce());
  incoming.on('end', useOnce);
}

/** The framework's body parser read the body before. */
function parsedBody(body: unknown, reader: BodyReader, { maxBytes }: RequestBodies): RequestBody {
  const isBytes = typeof body === 'string' || body instanceof Uint8Array;
  if (!isBytes) return jsonBody(body, maxBytes);
  reader.add(Buffer.from(body));
  return reader.body();
}

function toHttpRequest(incoming: FrameworkRequest, outgoing: ServerResponse, body: RequestBody): HttpRequest {
  const { method = 'GET' } = incoming;
  const url = wholeTarget(incoming);
  // The log of a framework has the id that it gave the request.
  const id = outgoing.getHeader('x-request-id');
  const own = withoutRepeats(plainHeaders(incoming));
  const headers = { ...own, ...(id !== undefined && { 'x-request-id': String(id) }) };
  let signal: AbortSignal | undefined;
  return {
    method,
    url,
    headers,
    body,
    ownsRoot: true,
    signal: () => (signal ??= closeSignal(outgoing)),
    isAborted: () => hasLeft(outgoing),
    toRequest: () => new Request(`http://localhost${url}`, { method, headers: headers as Record<string, string> }),
  };
}

/** Node adds pseudo-headers and a symbol to the headers of HTTP/2, which a Request rejects. */
function plainHeaders({ headers, httpVersionMajor }: IncomingMessage): Record<string, string | undefined> {
  const given = headers as Record<string, string | undefined>;
  if (httpVersionMajor < 2) return given;
  const plain = Object.entries(given).filter(([name]) => !name.startsWith(':'));
  return { host: given[':authority'], ...Object.fromEntries(plain) };
}

/** Returns path and query of a target. A client may send an absolute address, as it does to a proxy (RFC 9112, section 3.2.2). */
export function targetPath(target: string): string {
  if (target.startsWith('/')) return target;
  const url = URL.parse(target);
  return url && /^https?:$/.test(url.protocol) ? url.pathname + url.search : target;
}

function closeSignal(outgoing: ServerResponse): AbortSignal {
  const abort = new AbortController();
  const onClose = () => hasLeft(outgoing) && abort.abort();
  if (outgoing.closed) onClose();
  else outgoing.once('close', onClose);
  return abort.signal;
}

function hasLeft({ closed, writableFinished }: ServerResponse): boolean {
  return closed && !writableFinished;
}

/** Never throws: a framework's own `writeHead` may, which would end the program. */
function send(incoming: IncomingMessage, outgoing: ServerResponse, response: HttpResponse): void {
  try {
    write(incoming, outgoing, response);
  } catch {
    outgoing.destroy();
  }
}

/** What a framework has set before stays beside petql's headers, and instead of those that every response of petql has. */
function keepGiven(outgoing: ServerResponse, headers: HttpResponse['headers']): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) {
    if (headers[name] === value && outgoing.hasHeader(name)) delete headers[name];
  }
  const vary = outgoing.getHeader('vary');
  if (vary !== undefined) headers['vary'] = [vary, headers['vary'] ?? []].flat().join(', ');
}

function write(incoming: IncomingMessage, outgoing: ServerResponse, { status, headers, body }: HttpResponse): void {
  // A framework may have timed out and responded.
  if (outgoing.headersSent) return void outgoing.end();
  keepGiven(outgoing, headers);
  closeUnread(incoming, outgoing);
  const bytes = Buffer.byteLength(body);
  // A 204 has no Content-Length (RFC 9110, section 8.6).
  if (status !== 204) headers['content-length'] = String(bytes);
  outgoing.writeHead(status, headers);
  // ASCII needs no encoding.
  const encoding = bytes === body.length ? 'latin1' : 'utf8';
  if (incoming.readableEnded || incoming.complete) return void outgoing.end(body, encoding);

  // A client that is cut off while it sends may never see its response.
  outgoing.write(body, encoding);
  incoming.once('end', () => outgoing.end());
}
