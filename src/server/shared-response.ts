/**
 * An answer with bytes that others have for their body too. A Response made of bytes has a copy of its own from the start;
 * with some megabytes in each, a few dozen requests for a file would fill the memory. This one copies them when it is read,
 * and what sends it can do without that.
 */
export class SharedResponse extends Response {
  /** Its body as it is, not to be written to. */
  readonly shared: Buffer;

  constructor(shared: Buffer, init: ResponseInit) {
    super(streamOf(shared), init);
    this.shared = shared;
  }
}

function streamOf(bytes: Buffer): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        // Whoever reads it may do with it what they like.
        controller.enqueue(new Uint8Array(bytes));
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
