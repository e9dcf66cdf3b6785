import type { Socket } from 'node:net';
import { setStackTraceLimit } from '../stack-trace-limit.ts';

/**
 * When a connection closes, Node makes two errors for each of its requests that has no answer yet, with a stack that leads
 * nowhere but to Node and takes ten times as long as to read the request did. They have none here.
 *
 * @param socket one that Node's server has put its listeners on, and nobody else.
 */
export function resetWithoutStacks(socket: Socket): void {
  let limit: unknown;
  socket.prependOnceListener('close', () => {
    limit = setStackTraceLimit(0);
  });
  socket.once('close', () => void setStackTraceLimit(limit));
}
