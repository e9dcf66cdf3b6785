/** The signature of `fetch`. What frameworks pass beside a Request, such as its route, is no RequestInit. */
export type Fetch = (input: Request | URL | string, init?: RequestInit) => Promise<Response>;

/** Makes a handler of Requests the `fetch` of clients too. */
export function createFetch(handle: (request: Request) => Promise<Response>): Fetch {
  return async (input, init) => {
    if (isRequest(input) && !isInit(init)) return handle(input);

    // Clients such as Apollo's call `/graphql`, as in a browser.
    const request = new Request(isRequest(input) ? input : new URL(input, 'http://localhost'), init);
    request.signal.throwIfAborted();
    const response = await handle(request);
    request.signal.throwIfAborted();
    return response;
  };
}

/** The Request of a framework may have another class. */
function isRequest(input: Request | URL | string): input is Request {
  return typeof input === 'object' && 'headers' in input;
}

/** Whether it changes a request: what frameworks pass has none of these. */
function isInit(init: RequestInit | null | undefined): boolean {
  const { method, headers, body, signal } = init ?? {};
  return [method, headers, body, signal].some((member) => member !== undefined && member !== null);
}
