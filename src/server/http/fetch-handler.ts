import type { Respond } from './http-message.ts';
import { bodyTooLong, createBodyReader } from './request-body.ts';
import type { RequestBody } from './request-body.ts';

/** Serves the platform's own Request and Response, which frameworks know by their classes. */
export function createFetchHandler(respond: Respond, maxBodyBytes: number) {
  return async (request: Request): Promise<Response> => {
    const { method, headers } = request;
    const { pathname, search } = new URL(request.url);
    const response = await respond({
      method,
      url: pathname + search,
      headers: Object.fromEntries(headers),
      // A client that left while it sent gets the response to no body.
      body: await readBody(request, maxBodyBytes).catch(() => ''),
      signal: () => request.signal,
      isAborted: () => request.signal.aborted,
      toRequest: () => request,
    });
    const { status, body } = response;
    const hasBody = status !== 204 && status !== 304 && method !== 'HEAD';
    return new Response(hasBody ? (body as BodyInit) : null, { status, headers: response.headers });
  };
}

/** Does not read a body that is too long to its end. */
async function readBody(request: Request, maxBytes: number): Promise<RequestBody> {
  // Frameworks keep the connection open for a body that nothing has touched.
  if (Number(request.headers.get('content-length')) > maxBytes) return bodyTooLong(maxBytes);
  const reader = createBodyReader(maxBytes);
  // A cancelled body would reset the connection before its client has the response.
  for await (const chunk of request.body?.values({ preventCancel: true }) ?? []) {
    if (!reader.add(chunk)) break;
  }
  return reader.body();
}
