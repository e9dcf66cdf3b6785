import { withoutRepeats } from './http-message.ts';
import type { HttpRequest, HttpResponse, Respond } from './http-message.ts';
import { bodyTooLong } from './request-body.ts';
import type { BodyReader, RequestBodies, RequestBody } from './request-body.ts';

/** Serves the platform's own Request and Response, which frameworks know by their classes. */
export function createFetchHandler(respond: Respond, bodies: RequestBodies) {
  return async (request: Request): Promise<Response> => {
    const reader = bodies.read(request.headers.get('content-encoding') ?? undefined);
    try {
      const given = await toHttpRequest(request, reader, bodies);
      const response = await respond(given);
      // What cannot be used may not have been read to its end; `closeUnread` says why the connection must end then.
      if (typeof given.body !== 'string') response.headers['connection'] = 'close';
      return toResponse(request, response);
    } finally {
      reader.release();
    }
  };
}

async function toHttpRequest(request: Request, reader: BodyReader, bodies: RequestBodies): Promise<HttpRequest> {
  const { method, headers } = request;
  const { pathname, search } = new URL(request.url);
  return {
    method,
    url: pathname + search,
    headers: withoutRepeats(Object.fromEntries(headers)),
    // A client that left while it sent gets the response to no body.
    body: await readBody(request, reader, bodies).catch(() => ''),
    signal: () => request.signal,
    isAborted: () => request.signal.aborted,
    toRequest: () => request,
  };
}

function toResponse({ method }: Request, { status, headers, body }: HttpResponse): Response {
  const hasBody = status !== 204 && status !== 304 && method !== 'HEAD';
  return new Response(hasBody ? (body as BodyInit) : null, { status, headers });
}

/** Does not read a body that cannot be used to its end. */
async function readBody(request: Request, reader: BodyReader, bodies: RequestBodies): Promise<RequestBody> {
  const { maxBytes } = bodies;
  // Frameworks keep the connection open for a body that nothing has touched.
  if (Number(request.headers.get('content-length')) > maxBytes) return bodyTooLong(maxBytes);
  if (request.bodyUsed || request.body?.locked) return bodies.taken();
  // A cancelled body would reset the connection before its client has the response.
  for await (const chunk of request.body?.values({ preventCancel: true }) ?? []) {
    if (!reader.add(chunk)) break;
  }
  return reader.body();
}
