/** The bodies that belong to many answers, by answer. */
const bodies = new WeakMap<Response, Buffer>();

/**
 * An answer with bytes that others have for their body too. A Response made of bytes has a copy of its own from the start;
 * with some megabytes in each, a few dozen requests for a file would fill the memory. This one copies them when it is read, and what
 * sends it can do without that: it asks `sharedBytes` first.
 */
export function sharedResponse(bytes: Buffer, init: ResponseInit): Response {
  const whenRead = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        // Whoever reads it may do with it what they like.
        controller.enqueue(new Uint8Array(bytes));
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const response = new Response(whenRead, init);
  bodies.set(response, bytes);
  return response;
}

/** Its body where that is shared, as it is: not to be written to. */
export function sharedBytes(response: Response): Buffer | undefined {
  return bodies.get(response);
}
