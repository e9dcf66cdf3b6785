import { explanationOf, proxyStatusOf, reasonOfBreak, reasonWithoutConnection } from './connections.ts';
import type { CallController, CallHandler, Explanation, ResponseHeaders } from './connections.ts';
import { CodingError, decodedBody } from './content-coding.ts';

export type { ResponseHeaders } from './connections.ts';

export interface ResponseHead {
  readonly status: number;
  readonly headers: ResponseHeaders;
}

export interface TransportResponse extends ResponseHead {
  readonly kind: 'response';
  readonly body: Buffer;
}

/** Why a call has no complete response. */
export interface TransportFailure extends Explanation {
  readonly kind: 'failure';
  /** `malformed`: what came is not HTTP/1.1. `miscoded`: its body is not in the coding that it names, or in an unknown one. */
  readonly reason: 'broken' | 'malformed' | 'miscoded' | 'timeout' | 'too-large' | 'unreachable';
  /** Whether the upstream may have received the call. */
  readonly sent: boolean;
  /** Status and headers that arrived before the failure. */
  readonly head?: ResponseHead;
}

export interface ExchangeOptions {
  /** Max wait for a connection, and then max time from sending the call to the last byte of its response, in milliseconds. */
  readonly timeoutMs: number;
  /** Called when the call has a connection: from now on the upstream may have received it. */
  readonly onSent?: (() => void) | undefined;
  /** May be called several times; the first result counts. */
  readonly settle: (result: TransportResponse | TransportFailure) => void;
}

/** A list of 100 pets has some 10 KiB. */
const MAX_BODY_BYTES = 1_048_576;

/** Follows one call from the wait for its connection to the last byte of its response. */
export function createExchange({ timeoutMs, settle, onSent }: ExchangeOptions): CallHandler {
  let controller: CallController | undefined;
  let aborted: Error | undefined;
  let head: ResponseHead | undefined;
  const body = new Body();
  const timeout = setTimeout(() => abort('timeout', `no ${awaited()} within ${timeoutMs} ms`), timeoutMs);

  function fail(reason: TransportFailure['reason'], explanation: Explanation): void {
    clearTimeout(timeout);
    settle({ kind: 'failure', reason, sent: controller !== undefined, ...explanation, ...(head && { head }) });
  }

  function abort(reason: TransportFailure['reason'], problem: string): void {
    // Settles before the connection closes, which can take a while.
    fail(reason, { problem });
    aborted = new Error(reason);
    controller?.abort(aborted);
  }

  function awaited(): string {
    if (!controller) return 'connection';
    return head ? 'end of the body' : 'response';
  }

  return {
    // undici calls this when the call has a connection and is about to be written to it.
    onRequestStart(started) {
      if (aborted) return started.abort(aborted);
      controller = started;
      // The wait for a connection is over; the time of the call itself begins.
      timeout.refresh();
      onSent?.();
    },

    onResponseStart(_controller, status, headers) {
      // A 1xx is no response.
      if (status >= 200) head = { status, headers };
    },

    onResponseData(_controller, chunk) {
      if (body.length + chunk.length > MAX_BODY_BYTES) return abort('too-large', 'the body is over 1 MiB');
      body.append(chunk);
    },

    onResponseEnd() {
      clearTimeout(timeout);
      if (!head) return;
      try {
        const decoded = decodedBody(body.bytes(), head.headers['content-encoding'], MAX_BODY_BYTES);
        settle({ kind: 'response', ...head, body: decoded });
      } catch (error) {
        if (!(error instanceof CodingError)) throw error;
        const { reason, code, message: problem } = error;
        fail(reason, { ...(code !== undefined && { code }), problem });
      }
    },

    onResponseError(_controller, error) {
      // A proxy passes on nothing that it rejects.
      if (proxyStatusOf(error)) controller = undefined;
      fail(controller ? reasonOfBreak(error) : reasonWithoutConnection(error), explanationOf(error));
    },
  };
}

/** Bytes that arrive in chunks. It copies them, since a list of chunks takes 130 bytes for each, and a server may send single bytes. */
class Body {
  #buffer = Buffer.alloc(0);
  length = 0;

  append(chunk: Buffer): void {
    const needed = this.length + chunk.length;
    if (needed > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.min(MAX_BODY_BYTES, Math.max(needed, 2 * this.#buffer.length)));
      this.#buffer.copy(grown, 0, 0, this.length);
      this.#buffer = grown;
    }
    chunk.copy(this.#buffer, this.length);
    this.length = needed;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }
}
