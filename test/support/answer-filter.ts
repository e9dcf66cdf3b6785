import type { Socket } from 'node:net';
import type { PacedWriter } from './paced-writer.ts';
import type { WireFault } from './wire-fault.ts';

/** Passes the answer of one exchange on, spoilt as its fault says. */
export interface AnswerFilter {
  pass(bytes: Buffer): void;
  /** The client is gone. */
  stop(): void;
}

const HEAD_END = '\r\n\r\n';
/** In the midst of the headers: behind the line of the status. */
const MID_HEADERS = 30;
const SPACES = Buffer.from(`1000\r\n${' '.repeat(0x1000)}\r\n`);

export function createAnswerFilter(fault: WireFault, to: PacedWriter, client: Socket): AnswerFilter {
  const { latencyMs, bytesPerSecond } = fault;
  let head = Buffer.alloc(0);
  let headIsThere = false;
  /** Bytes that may still pass; undefined until the end of the headers is found. */
  let left = bytesBeforeBreak(fault);
  let done = false;

  return {
    pass(bytes) {
      if (done || fault.silent) return;
      if (fault.bytes !== undefined) {
        done = true;
        return write(Buffer.from(fault.bytes, 'latin1'));
      }
      if (left !== undefined && !fault.endless) return passSome(bytes);
      if (headIsThere) return;
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf(HEAD_END);
      if (end < 0) return;
      headIsThere = true;
      if (fault.endless) return pourSpaces(head.toString('latin1', 0, end));
      left = end + HEAD_END.length;
      passSome(head);
    },
    stop() {
      done = true;
    },
  };

  function passSome(bytes: Buffer): void {
    const passing = bytes.subarray(0, left);
    if (passing.length > 0) write(passing);
    left = (left ?? 0) - passing.length;
    if (left > 0) return;
    done = true;
    to.inTurn(() => (fault.resetAt ? client.resetAndDestroy() : client.end()));
  }

  function pourSpaces(headers: string): void {
    write(Buffer.from(headers.replace(/content-length: *\d+/i, 'transfer-encoding: chunked') + HEAD_END, 'latin1'));
    const pour = () => {
      if (done || client.destroyed) return;
      if (bytesPerSecond !== undefined) {
        write(SPACES);
        to.inTurn(() => setImmediate(pour));
      } else if (client.write(SPACES)) setImmediate(pour);
      else client.once('drain', pour);
    };
    to.inTurn(pour);
  }

  function write(bytes: Buffer): void {
    to.write(bytes, latencyMs, bytesPerSecond);
  }
}

function bytesBeforeBreak({ resetAt, cutAfterBytes = Infinity }: WireFault): number | undefined {
  if (resetAt === 'answer') return 0;
  if (resetAt === 'headers') return MID_HEADERS;
  return resetAt === 'body' ? undefined : cutAfterBytes;
}
