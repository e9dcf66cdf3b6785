import type { IncomingMessage } from 'node:http';
import { createGrowingBuffer } from '../growing-buffer.ts';
import type { GrowingBuffer } from '../growing-buffer.ts';
import { createHeldTogether } from './held-together.ts';

/** What Express and its like add to a request that went through them. */
export interface ReadIncoming extends IncomingMessage {
  readonly originalUrl?: string;
  readonly body?: unknown;
}

/** A body, or how long it is where it is longer than petql reads; it may be longer still. */
export type ReadBody = WholeBody | { readonly tooLong: number };

export interface WholeBody {
  readonly bytes: Buffer;
  /** Whether a framework's parser read it, and undid its content coding. */
  readonly parsedBefore?: true;
}

/**
 * @param use is called once, but not where the client goes away or is cut off before all of it is there. What comes behind
 * a body's longest length is read on and dropped, until the connection is closed.
 */
export type ReadBodyOf = (incoming: ReadIncoming, use: (body: ReadBody) => void) => void;

export interface BodyReaderOptions {
  readonly maxBodyBytes: number;
  /** What the bodies that are being read may hold together, in bytes. Default 64 MiB. */
  readonly mostBytesTogether?: number;
}

/** Networks and proxies cut bodies into pieces of hundreds of bytes at least; each piece costs as much as a kilobyte. */
const LEAST_BYTES_A_PIECE = 64;
/** Encoders that stream send a piece for each number and each bracket. These cost some ten milliseconds. */
const FREE_PIECES = 8_192;

/** Most bodies come in one piece, and need none of it. */
const FIRST_BYTES = 1_024;

/**
 * Reads bodies without letting anybody fill the memory with them. Whoever sends crumbs is cut off. When all that is being
 * read is past a limit, the body that has been on its way for the longest is given up and its connection cut, and so on: to
 * refuse new ones instead would let whoever holds that much keep everybody else out, and bodies of good callers are there
 * within moments.
 */
export function createBodyReader(options: BodyReaderOptions): ReadBodyOf {
  const { maxBodyBytes, mostBytesTogether = 67_108_864 } = options;
  const held = createHeldTogether<ReadIncoming>(mostBytesTogether, (oldest) => oldest.destroy());

  return (incoming, use) => {
    if (incoming.readableEnded) return use(readElsewhere(incoming.body, maxBodyBytes));
    const announced = Number(incoming.headers['content-length']);
    let tooLong = announced > maxBodyBytes;
    let pieces = 0;
    let length = 0;
    let first: Buffer | undefined;
    let more: GrowingBuffer | undefined;
    incoming.on('data', (piece: Buffer) => {
      pieces += 1;
      length += piece.length;
      if (pieces > FREE_PIECES + length / LEAST_BYTES_A_PIECE) {
        held.release(incoming);
        incoming.destroy();
      } else if (!tooLong && length > maxBodyBytes) {
        tooLong = true;
        first = more = undefined;
        held.release(incoming);
        use({ tooLong: length });
      } else if (!tooLong) keep(piece);
    });
    incoming.on('end', () => {
      if (tooLong) return;
      held.release(incoming);
      const bytes = more?.bytes() ?? first ?? NO_BYTES;
      // The request keeps its listeners, and whoever waits for the service keeps the request.
      first = more = undefined;
      use({ bytes });
    });
    if (tooLong) use({ tooLong: announced });

    function keep(piece: Buffer): void {
      if (!first) {
        first = piece;
        // Its end is there with it.
        if (length === announced) return;
        incoming.once('close', () => held.release(incoming));
        return held.hold(incoming, length);
      }
      if (!more) {
        more = createGrowingBuffer({ mostBytes: maxBodyBytes, firstBytes: FIRST_BYTES });
        more.add(first);
      }
      more.add(piece);
      held.hold(incoming, more.capacity);
    }
  };
}

const NO_BYTES = Buffer.alloc(0);

/** A parser of the framework's came first. Numbers that it rounded are still too large to be taken for exact ones. */
function readElsewhere(body: unknown, maxBodyBytes: number): ReadBody {
  const isBytes = typeof body === 'string' || body instanceof Uint8Array;
  const bytes = Buffer.from(isBytes ? body : (JSON.stringify(body) ?? ''));
  return bytes.length > maxBodyBytes ? { tooLong: bytes.length } : { bytes, parsedBefore: true };
}
