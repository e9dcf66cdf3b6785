import type { IncomingMessage } from 'node:http';

/**
 * Headers of one request. Browsers with all that proxies and traces add send some forty, and other servers take a hundred.
 * What is read of a header takes a hundred bytes and some microseconds besides its text, and 16 KiB have room for
 * thousands of them.
 */
const MOST_HEADERS = 150;

/**
 * How many Node is to keep. The others it refuses or, in older versions, drops in silence, a second Authorization among
 * them; so it keeps one more than there may be, and whoever sends that many is refused here.
 */
export const MOST_KEPT_HEADERS = MOST_HEADERS + 1;

/** Whether some of its headers may be missing. */
export function hasTooManyHeaders({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): boolean {
  return rawHeaders.length > 2 * MOST_HEADERS;
}
