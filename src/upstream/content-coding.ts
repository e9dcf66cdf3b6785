import { isUtf8 } from 'node:buffer';
import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync, zstdDecompressSync } from 'node:zlib';

type Decode = (body: Buffer, options: { readonly maxOutputLength: number }) => Buffer;

/** The codings that browsers read (RFC 9110, section 8.4.1, RFC 7932 and RFC 8878). */
const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: gunzipSync,
  'x-gzip': gunzipSync,
  // Some servers leave out the zlib header, whose first byte ends in 8.
  deflate: (body, options) => (((body[0] ?? 0) & 0x0f) === 8 ? inflateSync : inflateRawSync)(body, options),
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
};
/** As curl has it. Each one may cost the time of a whole body. */
const MAX_CODINGS = 5;

/** A body that cannot be decoded. */
export class CodingError extends Error {
  readonly reason: 'miscoded' | 'too-large';
  /** That of zlib. */
  readonly code: string | undefined;

  constructor(reason: 'miscoded' | 'too-large', problem: string, code?: string) {
    super(problem);
    this.reason = reason;
    this.code = code;
  }
}

/**
 * Decodes a body that a cache or a server has encoded, though petql accepts `identity` alone. A text is taken as it is where the
 * header has no name of a coding: what many servers name there is a charset.
 *
 * @param coding the `Content-Encoding`: codings in the order in which they were applied (RFC 9110, section 8.4).
 * @throws CodingError
 */
export function decodedBody(body: Buffer, coding: string | string[] | undefined, maxBytes: number): Buffer {
  if (coding === undefined || body.length === 0) return body;
  const names = codingsOf(coding);
  if (names.length > MAX_CODINGS) throw new CodingError('miscoded', `the body has over ${MAX_CODINGS} codings`);
  return names.reduceRight((coded, name) => decoded(coded, name, maxBytes), body);
}

function codingsOf(coding: string | string[]): string[] {
  const names = [coding].flat().flatMap((value) => value.toLowerCase().split(','));
  return names.map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity');
}

function decoded(body: Buffer, name: string, maxBytes: number): Buffer {
  const decode = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined;
  if (!decode) {
    if (isUtf8(body)) return body;
    throw new CodingError('miscoded', `the body is in ${shown(name)}, a Content-Encoding that petql does not read`);
  }

  try {
    return decode(body, { maxOutputLength: maxBytes });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ERR_BUFFER_TOO_LARGE') {
      throw new CodingError('too-large', 'the body is over 1 MiB when it is decoded', code);
    }
    throw new CodingError('miscoded', `the body is not in ${name}, its Content-Encoding`, code);
  }
}

/** Whatever else a header holds is no name of a coding. */
function shown(name: string): string {
  return /^[a-z][a-z0-9._-]{0,20}$/.test(name) ? name : 'an unknown coding';
}
