import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Ends a connection with the response to a request that has not come to its end (RFC 9110, section 15.5.14). A proxy that kept it
 * would send its next client's request as the rest of this body: that one gets no response, and what stands in it may be forged.
 */
export function closeUnread(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (!incoming.complete) outgoing.shouldKeepAlive = false;
}
