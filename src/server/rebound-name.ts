import type { IncomingMessage } from 'node:http';

/**
 * Whether a request came to this machine's loopback address under a name that is not its own. A browser sends such a one
 * when a page has let its own name lead to 127.0.0.1 (DNS rebinding), so that it may read the answers.
 */
export function hasReboundName({ headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>): boolean {
  const { host } = headers;
  return host !== undefined && LOOPBACK_ADDRESS.test(socket.localAddress ?? '') && !LOOPBACK_NAME.test(host);
}

const LOOPBACK_ADDRESS = /^(?:(?:::ffff:)?127\.|::1$)/;

/** No name below `localhost` can be led anywhere else (RFC 6761, section 6.3). */
const LOOPBACK_NAME = /^(?:(?:[\w-]+\.)*localhost\.?|127(?:\.\d{1,3}){3}|\[::1\])(?::\d*)?$/i;
