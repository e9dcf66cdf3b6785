import { isUtf8 } from 'node:buffer';
import type { GraphQLError } from 'graphql';
import type { Clock } from '../../common/clock.ts';
import { PetqlError, retryIn } from '../../common/errors.ts';
import { OnceLog } from '../../common/log.ts';
import type { Log } from '../../common/log.ts';
import { bytesFor } from '../../common/memory.ts';
import { SOON_MS } from '../../common/time-limit.ts';
import { badRequest, graphqlError } from '../errors.ts';
import { limitExceeded } from '../plugins/limit-exceeded.ts';

/** The text of a body, or the error of one that cannot be read. */
export type RequestBody = string | GraphQLError;

/** Small bodies are always read: connections bound what they take together. */
const SMALL_BYTES = 8_192;

/** Programs on Windows begin a text with it (RFC 8259, section 8.1). */
const BYTE_ORDER_MARK = '\uFEFF';

/** Memory of a chunk beside its bytes; measured. */
const CHUNK_BYTES = 200;

/** The bodies of all requests to a gateway, and the memory that large ones take together until their requests are over. */
export class RequestBodies {
  readonly maxBytes: number;
  readonly clock: Clock;
  readonly #log: OnceLog;
  readonly #maxLargeBytes = bytesFor('largeBodies');
  /** Beyond the first bytes of each body, which are not counted. */
  #largeBytes = 0;

  /** @param log gets a line where the server around petql keeps bodies to itself. */
  constructor(maxBytes: number, clock: Clock, log: Log) {
    this.maxBytes = maxBytes;
    this.clock = clock;
    this.#log = new OnceLog(log);
  }

  /**
   * Starts to read a body as its client sent it.
   *
   * @param encoding the request's Content-Encoding; undefined where a framework has decoded the body.
   */
  read(encoding?: string): BodyReader {
    const isCompressed = encoding?.split(',').some((coding) => !PLAIN.test(coding.trim())) === true;
    return new BodyReader(
      this,
      isCompressed ? badRequest(COMPRESSED, 415, { 'accept-encoding': 'identity' }) : undefined,
    );
  }

  /** Returns the error of a body that something before petql has read: no client can mend it. */
  taken(): GraphQLError {
    this.#log.warn({ reason: BODY_TAKEN }, 'the body of a request was read before petql got it');
    return graphqlError(new PetqlError('INTERNAL_SERVER_ERROR', BODY_TAKEN, { httpStatus: 500 }));
  }

  /** Returns whether there is room for so many bytes more. */
  hold(bytes: number): boolean {
    const isHeld = this.#largeBytes + bytes <= this.#maxLargeBytes;
    if (isHeld) this.#largeBytes += bytes;
    return isHeld;
  }

  release(bytes: number): void {
    this.#largeBytes -= bytes;
  }
}

/** Collects one body from its chunks. Its user releases it when the request is over, however that ends. */
export class BodyReader {
  readonly #bodies: RequestBodies;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #heldBytes = 0;
  /** Why the body cannot be used; nothing of it is kept then. */
  #problem: GraphQLError | undefined;

  constructor(bodies: RequestBodies, problem: GraphQLError | undefined) {
    this.#bodies = bodies;
    this.#problem = problem;
  }

  /** Returns whether the body can still be used. */
  add(chunk: Uint8Array): boolean {
    if (this.#problem) return false;

    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    if (this.#bytes > this.#bodies.maxBytes) this.#reject(bodyTooLong(this.#bodies.maxBytes));
    else if (!this.#holdChunks()) this.#reject(tooManyBodies(this.#bodies.clock.now()));
    return this.#problem === undefined;
  }

  body(): RequestBody {
    if (this.#problem) return this.#problem;
    const whole = Buffer.concat(this.#chunks, this.#bytes);
    this.#chunks = [];
    // Decoding would replace bytes, and create a pet of another name.
    if (!isUtf8(whole)) return badRequest(NOT_UTF8, 400);
    const text = whole.toString();
    return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  }

  release(): void {
    this.#bodies.release(this.#heldBytes);
    this.#heldBytes = 0;
  }

  #holdChunks(): boolean {
    const bytes = this.#bytes + CHUNK_BYTES * this.#chunks.length - SMALL_BYTES;
    if (bytes <= 0) return true;
    if (!this.#bodies.hold(bytes - this.#heldBytes)) return false;
    this.#heldBytes = bytes;
    return true;
  }

  #reject(problem: GraphQLError): void {
    this.#problem = problem;
    this.#chunks = [];
    this.release();
  }
}

/** Returns a value that a program gives as JSON, such as the body that a body parser has read. */
export function jsonBody(value: unknown, maxBytes: number): RequestBody {
  try {
    const text = JSON.stringify(value, bigintAsText) ?? '';
    return Buffer.byteLength(text) > maxBytes ? bodyTooLong(maxBytes) : text;
  } catch {
    return badRequest(NO_JSON, 422);
  }
}

export function bodyTooLong(maxBytes: number): GraphQLError {
  return graphqlError(limitExceeded('bodyBytes', maxBytes, undefined, 413));
}

function tooManyBodies(nowMs: number): GraphQLError {
  return graphqlError(
    new PetqlError('RATE_LIMITED', TOO_MANY_BODIES, {
      details: retryIn(SOON_MS, nowMs),
      httpStatus: 503,
      httpHeaders: { 'retry-after': String(SOON_MS / 1_000) },
    }),
  );
}

const BODY_TAKEN =
  'The server has read the body of this request before petql. Mount petql before what reads bodies, or pass it on: ' +
  'as `request.body` of Node, or as a clone of the Request.';
const TOO_MANY_BODIES = 'petql reads too many large request bodies at once. Retry later, or send a shorter body.';
/** No compression; some clients put the character set here. */
const PLAIN = /^(?:identity|utf-?8)?$/i;
const COMPRESSED = 'Expected a body without compression: send it without a Content-Encoding.';
const NOT_UTF8 = 'Expected a body in UTF-8, without compression.';
const NO_JSON = 'Expected variables that JSON can hold: no circular references, and no thousands of levels.';

/** Ids may be bigints, which JSON has no numbers for. */
function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
