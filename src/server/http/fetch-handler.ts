import type { Respond } from './http-message.ts';

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

/** @returns undefined for a body that is too long, which is not read to its end. */
async function readBody(request: Request, maxBytes: number): Promise<string | undefined> {
  // Frameworks keep the connection open for a body that nothing has touched.
  if (Number(request.headers.get('content-length')) > maxBytes) return undefined;
  const { body } = request;
  if (!body) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // A cancelled body would reset the connection before its client has the response.
  for await (const chunk of body.values({ preventCancel: true })) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
