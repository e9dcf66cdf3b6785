import type { Socket } from 'node:net';

const CONTINUE = 'HTTP/1.1 100 ';
const HEAD_END = '\r\n\r\n';
/** A longer head is left to undici. */
const MAX_HEAD_BYTES = 16_384;

/**
 * Drops each `100 Continue` before a response, which some servers send to every POST. A client reads on at it, also where it asked
 * for none (RFC 9110, section 15.2); undici closes the connection, and the response is lost.
 *
 * @param socket a connection with one call at a time.
 */
export function dropContinue(socket: Socket): void {
  const write = socket.write.bind(socket);
  const push = socket.push.bind(socket);
  /** Whether the next bytes begin a response. */
  let isAtStart = false;
  let head = Buffer.alloc(0);

  // Only what follows a request begins a response: a body may have such bytes too.
  socket.write = ((...written: Parameters<typeof write>) => {
    isAtStart = true;
    return write(...written);
  }) as typeof socket.write;

  socket.push = (chunk: Buffer | null) => {
    if (!isAtStart) return push(chunk);
    if (chunk) head = Buffer.concat([head, chunk]);

    let end = endOfContinue(head);
    while (end > 0) {
      head = head.subarray(end);
      end = endOfContinue(head);
    }
    const isUndecided = end < 0 && chunk !== null && head.length < MAX_HEAD_BYTES;
    if (isUndecided) return true;

    isAtStart = false;
    const rest = head;
    head = Buffer.alloc(0);
    const wantsMore = rest.length === 0 || push(rest);
    return chunk === null ? push(null) : wantsMore;
  };
}

/** Returns where the head of a 100 ends; 0 where another response begins, and -1 where that is not known yet. */
function endOfContinue(head: Buffer): number {
  const start = head.toString('latin1', 0, CONTINUE.length);
  if (!CONTINUE.startsWith(start)) return 0;
  const end = start === CONTINUE ? head.indexOf(HEAD_END) : -1;
  return end < 0 ? -1 : end + HEAD_END.length;
}
