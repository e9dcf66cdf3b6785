import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib';

type Decode = (body: Buffer, options: { readonly maxOutputLength: number }) => Buffer;

/** The codings that browsers read (RFC 9110, section 8.4.1, and RFC 7932). */
const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: gunzipSync,
  'x-gzip': gunzipSync,
  // Some servers leave out the zlib header, whose first byte ends in 8.
  deflate: (body, options) => (((body[0] ?? 0) & 0x0f) === 8 ? inflateSync : inflateRawSync)(body, options),
  br: brotliDecompressSync,
};

/**
 * Decodes a body that a cache or a server has encoded, though petql accepts `identity` alone. Another value of the header than
 * these is taken for none: what many servers name there is no coding.
 *
 * @param coding the `Content-Encoding`.
 * @throws Error with the code ERR_BUFFER_TOO_LARGE where more than `maxBytes` come out, or another one of zlib.
 */
export function decodedBody(body: Buffer, coding: string | string[] | undefined, maxBytes: number): Buffer {
  const name = String(coding ?? '').toLowerCase();
  const decode = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined;
  return decode && body.length > 0 ? decode(body, { maxOutputLength: maxBytes }) : body;
}
